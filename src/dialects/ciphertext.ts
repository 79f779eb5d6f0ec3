/** Characters of ciphertext for each one counted: base64 has a token of BPE for 1.4 of them, and hides one of thought in about 6. */
const CIPHERTEXT_SHARE = 4;

/** What encrypted reasoning without a text is counted by: a piece of what hides it. */
export function countedCiphertext(hidden: string): string {
  return hidden.slice(0, Math.ceil(hidden.length / CIPHERTEXT_SHARE));
}
