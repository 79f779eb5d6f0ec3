import { hash32 } from './seeded.js';

/** Log probabilities of a text, word by word: made up, the same for the same word, with `top` alternatives each. */
export function tokenLogprobs(text: string, top: number): readonly unknown[] {
  return (text.match(/\s*\S+|\s+$/gu) ?? []).map((token) => {
    const logprob = -((hash32(token) % 1000) + 1) / 1000;
    return {
      ...scored(token, logprob),
      top_logprobs: Array.from({ length: top }, (_, rank) =>
        scored(rank === 0 ? token : `${token}~${rank}`, logprob - rank),
      ),
    };
  });
}

function scored(token: string, logprob: number) {
  return { token, logprob, bytes: [...new TextEncoder().encode(token)] };
}
