/**
 * Context windows in tokens by model pattern, in which `*` stands for any characters. The first pattern that matches
 * counts; a model that none matches has no limit. A function may answer differently from one request to the next.
 */
export type Windows = Readonly<Record<string, number>> | ((model: string) => number | null);

export function windowOf(windows: Windows, model: string): number | null {
  if (typeof windows === 'function') return windows(model);
  const match = Object.entries(windows).find(([pattern]) => matches(pattern, model));
  return match === undefined ? null : match[1];
}

function matches(pattern: string, model: string): boolean {
  const literal = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('.*')}$`).test(model);
}
