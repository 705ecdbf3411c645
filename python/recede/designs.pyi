# What `designs.py` imports on first use, for type checkers.
from recede.agent._auto_continue import auto_continue as auto_continue
from recede.agent._auto_continue import auto_continue_async as auto_continue_async
from recede.agent._budget import Budget as Budget
from recede.agent._conversation import Conversation as Conversation
from recede.reduction import HistoryReducer as HistoryReducer
from recede.reduction import approx_tokens as approx_tokens
from recede.reduction import mask_observation as mask_observation
from recede.reduction import mask_observations as mask_observations
from recede.reduction import mask_observations_json as mask_observations_json
from recede.reduction import mask_old_observations as mask_old_observations
from recede.reduction import mask_old_observations_json as mask_old_observations_json
from recede.reduction import summarize_history as summarize_history
from recede.reduction import truncate_history as truncate_history
from recede.turns._hybrid import HybridContextManager as HybridContextManager
from recede.turns._masking import ObservationMaskingContextManager as ObservationMaskingContextManager
from recede.turns._masking import apply_observation_masking as apply_observation_masking
from recede.turns._production import ProductionHybridContextManager as ProductionHybridContextManager
