"""Whether the Hugging Face hub can be reached, asked once and briefly."""

from huggingface_hub import constants, get_session


def hub_answers(seconds: float = 5.0) -> bool:
    """One try. The hub's own client goes on trying for half a minute where there is no network."""
    try:
        get_session().head(constants.ENDPOINT, timeout=seconds)
    except Exception:  # of whichever HTTP library this version of the client is built on
        return False
    return True
