// An extension that `recede proxy -- pi` gives to pi, which takes addresses from its settings alone.
export default function (pi) {
  const { ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL, RECEDE_PI_ADDRESSES } = process.env;
  const found = {
    anthropic: ANTHROPIC_BASE_URL,
    openai: OPENAI_BASE_URL,
    google: `${GOOGLE_GEMINI_BASE_URL}/v1beta`,
    ...JSON.parse(RECEDE_PI_ADDRESSES || "{}"),
  };
  for (const [name, baseUrl] of Object.entries(found)) pi.registerProvider(name, { baseUrl });
}
