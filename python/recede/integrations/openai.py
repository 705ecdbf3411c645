"""There is no adapter for the clients of OpenAI, since `recede.wrap` takes them: importing this says so."""

raise ImportError(
    "recede.integrations has nothing for the clients of OpenAI: use recede.wrap(client); "
    "recede.integrations.openai_agents is that of the Agents SDK"
)
