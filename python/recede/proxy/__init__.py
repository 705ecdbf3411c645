"""Masking of whole request bodies, for agents whose code is not yours: `RequestMasker`, and a server.

The server, `recede.proxy.server`, needs the extra ``recede[cli]``; the rest needs nothing.
"""

from recede.proxy._ledger import ColdRequests
from recede.proxy._masked import MaskedRequest
from recede.proxy._masker import RequestMasker
from recede.proxy._summaries import AskedSummary

__all__ = ["AskedSummary", "ColdRequests", "MaskedRequest", "RequestMasker"]
