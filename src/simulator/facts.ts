// No word boundary in front: inside JSON text a line break is written as a letter, `\nFACT-a=1`.
const FACT = /FACT-([\w-]+)=([\w./:@+-]*\w)/g;
const TAG = /(?:\b|(?<=\\[nrt]))tag-\w+/g;
const ASKED = /\bFACT-([\w-]*\w)(?![\w=-])/g;

/** The facts planted in texts as `FACT-<word>=<value>`, by word, in the order of their latest values. */
export function plantedFacts(texts: readonly string[]): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  for (const text of texts) {
    for (const [, word = '', value = ''] of text.matchAll(FACT)) {
      facts.delete(word);
      facts.set(word, value);
    }
  }
  return facts;
}

/** Words of the form `tag-<letters>` in texts, each once, in order of appearance. */
export function plantedTags(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.flatMap((text) => text.match(TAG) ?? []))];
}

/** The words of the facts whose value a text asks for, as in "what is the value of FACT-city?". */
export function factsAskedFor(text: string): readonly string[] {
  if (!/\bvalues?\b/i.test(text)) return [];
  return [...text.matchAll(ASKED)].map(([, word = '']) => word);
}
