"""What tests against the real server share: the model library, loaded once."""

import importlib
import os
import warnings

import pytest


@pytest.fixture(autouse=True, scope="session")
def model_library(clean_environment: None) -> None:
    """Import litellm before the clock of a test runs: it takes seconds, on a busy machine many."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("litellm")
