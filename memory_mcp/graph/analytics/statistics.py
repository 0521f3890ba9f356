"""Statistics of the graph: size, density, connected components, clustering."""

from dataclasses import dataclass

from memory_mcp.store.graph.network import Network


@dataclass(frozen=True, slots=True)
class Statistics:
    """`pairs`: of related entities. `density`: their share of all pairs, 0 to 1. `components`: connected components; `largest_component` and
    `isolated` count entities. `clustering`: the share of pairs with a common neighbor that are related, 0 to 1. `betweenness` has the mean distance."""

    entities: int
    relations: int
    pairs: int
    density: float
    components: int
    largest_component: int
    isolated: int
    mean_degree: float
    clustering: float
    nbytes: int = 200


def statistics(network: Network) -> Statistics:
    """Computes all of them."""
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    n, pairs = len(network.ids), len(network.one)
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(n))
    graph.extend_from_edge_list(list(zip(network.one.tolist(), network.other.tolist(), strict=True)))
    sizes = [len(component) for component in rustworkx.connected_components(graph)]
    return Statistics(
        entities=n,
        relations=network.relations,
        pairs=pairs,
        density=2 * pairs / (n * (n - 1)) if n > 1 else 0.0,
        components=len(sizes),
        largest_component=max(sizes, default=0),
        isolated=sizes.count(1),
        mean_degree=2 * pairs / n if n else 0.0,
        clustering=rustworkx.transitivity(graph) if pairs else 0.0,
    )
