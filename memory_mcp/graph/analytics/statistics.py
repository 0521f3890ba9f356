"""The graph in figures: how much there is, how densely and in how many pieces it hangs together."""

from dataclasses import dataclass

from memory_mcp.store.graph.network import Network


@dataclass(frozen=True, slots=True)
class Statistics:
    """`pairs`: of entities that are related at all. `density`: their share of all pairs, 0 to 1. `components`: pieces that no relation
    leads out of, `largest_component` and `isolated` count entities. `clustering`: of those that are related to the same, how many are
    related to each other, 0 to 1. How far apart they are, `waves` tells."""

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
    """All of it."""
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    n, pairs = len(network.ids), len(network.one)
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(n))
    graph.extend_from_edge_list(list(zip(network.one.tolist(), network.other.tolist(), strict=True)))
    sizes = [len(piece) for piece in rustworkx.connected_components(graph)]
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
