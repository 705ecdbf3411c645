"""The fields of a request whose history the provider keeps: what it sends is the rest, which is not masked."""

__all__ = ["KEPT_BY_PROVIDER"]

KEPT_BY_PROVIDER = ("previous_response_id", "conversation", "thread")
