import { SpillwayError } from '../core/errors.js';
import type { Catalogue } from './catalogue.js';

/** The window of every model whose whole id matches `pattern`, in which `*` stands for any characters. */
export interface WindowPattern {
  readonly pattern: string;
  readonly tokens: number;
}

/** What is known of a model wherever it runs, in tokens; null where nothing is. */
export interface ModelLimits {
  /** The window that the operator set. */
  readonly configured: number | null;
  readonly catalogue: number | null;
  /** The most output the model can give (SPEC 7.2). */
  readonly outputTokens: number | null;
}

/**
 * Tells a model's limits; of the patterns the first that matches. The catalogue is loaded on the first call, once; when it cannot be loaded, the call rejects and the next one tries again.
 */
export function createWindows(
  patterns: readonly WindowPattern[],
  loadCatalogue: () => Promise<Catalogue>,
): (model: string) => Promise<ModelLimits> {
  let loading: Promise<Catalogue> | null = null;
  return async (model) => {
    loading ??= loadCatalogue();
    const catalogue = await loading.catch((error: unknown) => {
      loading = null;
      throw error;
    });
    const entry = catalogue(model);
    const configured = patterns.find(({ pattern }) => matches(pattern, model));
    return {
      configured: configured?.tokens ?? null,
      catalogue: entry?.windowTokens ?? null,
      outputTokens: entry?.outputTokens ?? null,
    };
  };
}

/** Reads `pattern=tokens,…`. Rejects with `invalid_setting`, naming `setting` and the part at fault. */
export function parseWindowPatterns(text: string, setting: string): readonly WindowPattern[] {
  const parts = text.split(',').map((part) => part.trim());
  return parts
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.lastIndexOf('=');
      const pattern = part.slice(0, Math.max(equals, 0)).trim();
      const digits = part.slice(equals + 1).trim();
      if (pattern === '' || !/^[1-9]\d{0,8}$/.test(digits)) {
        throw new SpillwayError(
          'invalid_setting',
          `${setting}: ${JSON.stringify(part)} is not pattern=tokens`,
          setting,
        );
      }
      return { pattern, tokens: Number(digits) };
    });
}

/** In time linear in `text` for each `*`: the model's name is the client's to choose, so no regular expression is built. */
function matches(pattern: string, text: string): boolean {
  const [start = '', ...rest] = pattern.split('*');
  const end = rest.pop();
  if (end === undefined) return text === start;
  if (!text.startsWith(start)) return false;
  let at = start.length;
  for (const middle of rest) {
    const found = text.indexOf(middle, at);
    if (found === -1) return false;
    at = found + middle.length;
  }
  return text.length - at >= end.length && text.endsWith(end);
}
