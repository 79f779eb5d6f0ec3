/** The tokenizers whose ranks are at hand. */
export const ENCODINGS = ['o200k_base', 'cl100k_base'] as const;

export type Encoding = (typeof ENCODINGS)[number];

/** Model families, without vendor prefix, that still use the older tokenizer. */
const CL100K_FAMILIES: readonly RegExp[] = [/^gpt-4(?:-|$)/, /^gpt-3\.?5(?:-|$)/, /^text-embedding-/];

/**
 * The tokenizer to count with for a model name as clients write it: `gpt-4-0613`, `ft:gpt-3.5-turbo:acme::1`,
 * `openai/gpt-4`. Every unknown model, other vendors' included, is counted with `o200k_base`.
 */
export function encodingFor(model: string): Encoding {
  const family = model
    .slice(model.lastIndexOf('/') + 1)
    .replace(/^ft:/, '')
    .replace(/:.*$/s, '');
  return CL100K_FAMILIES.some((pattern) => pattern.test(family)) ? 'cl100k_base' : 'o200k_base';
}
