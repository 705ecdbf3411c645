// An extension that `recede proxy -- pi` gives to pi, which takes addresses from its settings alone.
export default function (pi) {
  const { ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL } = process.env;
  pi.registerProvider("anthropic", { baseUrl: ANTHROPIC_BASE_URL });
  pi.registerProvider("openai", { baseUrl: OPENAI_BASE_URL });
  pi.registerProvider("google", { baseUrl: `${GOOGLE_GEMINI_BASE_URL}/v1beta` });
}
