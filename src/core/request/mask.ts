import type { ToolCall } from '../message.js';

/** Characters of a masked result that are shown at each end. */
const SHOWN = 60;

const FAILURE = /\b(?:error|exception|traceback|failed|failure|fatal|denied|not found)\b/i;
const EXIT_CODE = /\bexit(?:ed)?(?: with)?(?: code| status)?:? ?(\d{1,3})\b/i;

/**
 * One line in the place of a tool result (SPEC 7.3): the tool, the size, how it ended as far as its text tells, its first and last
 * characters, and where the original is. The same result gives the same line.
 */
export function maskLine(call: ToolCall, nodeId: string, text: string): string {
  const exit = EXIT_CODE.exec(text)?.[1];
  const ended = exit === undefined ? (FAILURE.test(text) ? ', mentions a failure' : '') : `, exit ${exit}`;
  const start = oneLine(text.slice(0, SHOWN * 2)).slice(0, SHOWN);
  const end = oneLine(text.slice(-SHOWN * 2)).slice(-SHOWN);
  return `[${call.name} result of ${text.length} characters${ended}, left out: "${start} … ${end}"; whole in node ${nodeId}]`;
}

/** White space folded, and no surrogate left alone by a cut. */
function oneLine(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/\p{Surrogate}/gu, '')
    .trim();
}
