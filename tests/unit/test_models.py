"""What is said of the models while nothing loads them."""

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import models_for


def test_a_model_that_is_not_wanted_is_off():
    models = models_for(Settings(embeddings_model=None, reranker_model=None))
    assert (models.embedder, models.reranker) == (None, None)
    assert (models.embedder_state.state, models.reranker_state.state) == ("off", "off")
    assert models.embedder_state.error is None


def test_a_model_that_is_wanted_and_not_there_says_why():
    models = models_for(Settings(embeddings_model="some/model", reranker_model=None))
    assert (models.embedder_state.state, models.embedder_state.name) == ("absent", "some/model")
    assert models.embedder_state.error
