import type OpenAI from 'openai';
import { sentence } from '../../src/simulator/default-script.js';

type Message = OpenAI.ChatCompletionMessageParam;

/** What happens at one place of the demo conversation. */
export type DemoStep =
  | { readonly kind: 'chat'; readonly text: string }
  /** The user asks for something that takes tools. */
  | { readonly kind: 'tools'; readonly text: string }
  /** The client throws the last reply away and asks again. */
  | { readonly kind: 'regenerate' }
  | { readonly kind: 'recall'; readonly text: string; readonly expected: readonly string[] };

/** Planted in the first messages, asked for at the very end. */
const FACTS: readonly (readonly [word: string, value: string])[] = [
  ['port', '9090'],
  ['codename', 'heron'],
  ['deploy-window', 'tuesday-07:30'],
  ['budget', '41250'],
];

export const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'read_file',
      description: 'Reads a file of the project.',
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    },
  },
];

export const INSTRUCTIONS: Message = {
  role: 'system',
  content: 'You help with a software project. Answer briefly. Use read_file when a file is named as a call.',
};

/** Some sixty turns: talk, tool calls, one regenerated reply in the middle, and at the end questions about the beginning. */
export function demoSteps(turns: number): readonly DemoStep[] {
  const facts = FACTS.map(([word, value]): DemoStep => ({
    kind: 'chat',
    text: `Please remember for later: FACT-${word}=${value}. ${sentence(`fact ${word}`, 40)}`,
  }));
  const middle = Array.from({ length: turns - FACTS.length - 2 }, (_, index): DemoStep => {
    if (index === Math.floor(turns / 2)) return { kind: 'regenerate' };
    if (index % 4 === 1) {
      const paths = [`src/part-${index}.ts`, `test/part-${index}.ts`];
      return { kind: 'tools', text: `Compare ${paths.map((path) => `read_file({"path":"${path}"})`).join(' and ')}.` };
    }
    return { kind: 'chat', text: sentence(`turn ${index}`, 90) };
  });
  const words = FACTS.map(([word]) => `FACT-${word}`).join(', ');
  return [
    ...facts,
    ...middle,
    { kind: 'recall', text: `What are the values of ${words}?`, expected: FACTS.map(([, value]) => value) },
  ];
}

/** Long messages, so that a window is full after a few. */
export function shortSteps(windowTokens: number): readonly DemoStep[] {
  const words = Math.floor(windowTokens / 4);
  return Array.from({ length: 4 }, (_, index) => ({ kind: 'chat', text: sentence(`long ${index}`, words) }));
}

/** The content of any file a demo tool reads: plain text, the same for the same path. */
export function fileContent(path: string): string {
  return sentence(path, 220);
}
