/** The sections every summary of a conversation has, in this order (SPEC 5.6). A text that lacks one is none (SPEC 5.7). */
export const SUMMARY_HEADINGS: readonly string[] = [
  '## Intent',
  '## Standing instructions',
  '## Decisions',
  '## Work done',
  '## In progress and blocked',
  '## Exact facts',
  '## Open questions',
];

/** How the instructions of every summary call begin. */
export const OPENING = 'You keep the record of a conversation between a user and an assistant.';

/** Recognises a summary call of Spillway's by its instructions. */
export function isSummaryPrompt(instructions: string): boolean {
  return instructions.startsWith(OPENING);
}
