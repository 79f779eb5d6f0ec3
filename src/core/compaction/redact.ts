/**
 * Credentials in well-known shapes. Each pattern is linear: a fixed prefix and bounded runs; the one with long runs begins
 * only where such a run does. A text that only looks like one is worth less than a secret that is copied into every later
 * request. In the arguments of a call, which are JSON text, a line break is written as a letter: no word boundary follows.
 */
const SECRET_SHAPES: readonly RegExp[] = [
  /(?:\b|(?<=\\[nrt]))sk-[A-Za-z0-9_-]{20,200}/g,
  /(?:\b|(?<=\\[nrt]))gh[pousr]_[A-Za-z0-9]{30,255}/g,
  /(?:\b|(?<=\\[nrt]))github_pat_[A-Za-z0-9_]{40,255}/g,
  /(?:\b|(?<=\\[nrt]))xox[abprs]-[A-Za-z0-9-]{10,255}/g,
  /(?:\b|(?<=\\[nrt]))AKIA[0-9A-Z]{16}\b/g,
  /(?:\b|(?<=\\[nrt]))AIza[A-Za-z0-9_-]{35}/g,
  /(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}/g,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s:,.\\]|-(?!-)){0,20000}-----END [A-Z ]{0,40}PRIVATE KEY-----/g,
];

/** The text with credentials in well-known shapes replaced: a summary must not carry one onward. */
export function redactSecrets(text: string): string {
  return SECRET_SHAPES.reduce((current, shape) => current.replace(shape, '[redacted]'), text);
}
