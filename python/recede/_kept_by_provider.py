"""Fields by which a provider keeps the history itself: such a request sends the rest, and is not masked."""

__all__ = ["KEPT_BY_PROVIDER"]

KEPT_BY_PROVIDER = ("previous_response_id", "conversation", "thread")
