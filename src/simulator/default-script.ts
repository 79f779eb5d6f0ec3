import { factsAskedFor, plantedFacts } from './facts.js';
import { stringsIn } from './json-value.js';
import { lastUserText } from './model-request.js';
import type { ModelRequest } from './model-request.js';
import type { PlannedCall, ReplyPlan } from './reply-plan.js';
import { callTools, say } from './reply-plan.js';
import { hash32, seededRandom } from './seeded.js';

const WORDS =
  'about after again along apart below build carry check clear count depth drift early earth edge field final flow found gate ground hold inlet keep later level light lower mark measure near north over path plain quiet rain reach river rise round safe shore slow south steady stone store stream tide tower under until upper valley wall water while wide winter'.split(
    ' ',
  );

/**
 * The reply without a script. It tells the value of each `FACT-<word>` the last user message asks for, if what was sent
 * contains it; makes the calls that message spells out, as in `read_file({"path": "a"})`, if those tools are offered; and
 * otherwise says a sentence of `words` words that depends on what was sent alone.
 */
export function defaultReply(request: ModelRequest, words: number): ReplyPlan {
  const asked = lastUserText(request.messages);
  const facts = factsAskedFor(asked);
  if (facts.length > 0) return say(toldFacts(facts, request));
  const isAnswered = request.messages.at(-1)?.role !== 'user';
  const calls = isAnswered ? [] : request.toolNames.flatMap((name) => callsSpelledOut(asked, name));
  return calls.length > 0
    ? callTools(...calls)
    : say(sentence(JSON.stringify(request.body['messages'] ?? request.body['input'] ?? request.body), words));
}

function toldFacts(words: readonly string[], request: ModelRequest): string {
  const known = plantedFacts(stringsIn(request.reads));
  return words
    .map((word) => {
      const value = known.get(word);
      return value === undefined
        ? `I do not know the value of FACT-${word}.`
        : `The value of FACT-${word} is ${value}.`;
    })
    .join(' ');
}

function callsSpelledOut(text: string, name: string): readonly PlannedCall[] {
  const call = new RegExp(`\\b${name.replace(/[^\w]/g, '\\$&')}\\((\\{[^]*?\\})\\)`, 'g');
  return [...text.matchAll(call)].map(([, json = '{}']) => ({ name, arguments: json }));
}

/** `words` words and a full stop, chosen by `seed`. */
export function sentence(seed: string, words: number): string {
  const random = seededRandom(hash32(seed));
  const chosen = Array.from({ length: words }, () => WORDS[Math.floor(random() * WORDS.length)] ?? '');
  const text = chosen.join(' ');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
