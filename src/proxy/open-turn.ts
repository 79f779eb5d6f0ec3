import { budgetShare, calibrationOf, reserveTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { CANONICAL_VERSION, chainIds, rootDigest } from '../core/canonical.js';
import { createPurse } from '../core/compaction/purse.js';
import { SpillwayError } from '../core/errors.js';
import type { Message } from '../core/message.js';
import { isCommand } from '../core/node.js';
import type { Node } from '../core/node.js';
import type { Clock, Hash, Ledger, NewConversation, Spine, SummaryPolicy, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import type { WindowScope } from '../core/windows.js';
import type { Dialect, ReadRequest, WireMessage } from '../dialects/dialect.js';
import { byteBound } from '../tokens/byte-bound.js';
import { readCompactCommand, taggedCommands } from './command.js';
import { identify, namedId, policyFor, sessionOf } from './identify.js';
import { createMeasure } from './measure.js';
import type { ProxyRequest } from './request.js';
import type { RunningTurns } from './running-turns.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { Sign } from './tenant.js';
import { chainNodeBuilder } from './turn-nodes.js';
import { TurnWriter } from './turn-writer.js';
import type { ModelBelief, RequestBody, Turn } from './turn.js';

/** A request that was read and belongs to a tenant, not yet to a conversation. */
export interface Incoming {
  readonly request: ProxyRequest;
  readonly dialect: Dialect;
  readonly read: ReadRequest;
  readonly body: RequestBody;
  readonly options: SpillwayHeaders;
  readonly tenant: string;
  readonly closed: AbortSignal;
}

export interface OpenTurnDeps {
  readonly ledger: Ledger;
  readonly running: RunningTurns;
  readonly hash: Hash;
  readonly sign: Sign;
  readonly policy: SummaryPolicy | 'auto';
  readonly clock: Clock;
  readonly purse: { readonly calls: number; readonly durationMs: number };
  /** Share of the window below which nothing has to be counted. */
  readonly trigger: number;
  /** Whether `/compact` is a command here; where nothing is ever rewritten it is text like any other. */
  readonly readsCommands: boolean;
  belief(scope: WindowScope, model: string): Promise<ModelBelief>;
  loadCounter(model: string): Promise<TokenCounter>;
}

/** Where a request's messages stand: ids, and how each is sent. */
interface Placed {
  readonly conversation: NewConversation;
  readonly messages: readonly Message[];
  readonly chain: readonly string[];
  readonly wire: readonly WireMessage[];
  /** Ids of commands that the ledger already told of. */
  readonly commands: ReadonlySet<string>;
}

/**
 * Makes a request's nodes durable and gathers what its view needs (SPEC 2.4, 2.7). Rejects with `conversation_not_found`,
 * `node_not_found`, `turn_in_progress`, `store_unavailable`.
 */
export async function openTurn(incoming: Incoming, deps: OpenTurnDeps): Promise<Turn> {
  const { read, options, dialect } = incoming;
  const policy = policyFor(options.conversation, deps.policy);
  const placed = options.append ? await placeThin(incoming, policy, deps) : placeFull(incoming, deps.hash);
  const scope = { tenant: incoming.tenant, upstream: incoming.request.upstream.baseUrl };
  const belief = await deps.belief(scope, read.model);
  const counter = await counterIfNeeded(incoming, belief, deps);

  const spine = spineOf(placed, deps);
  const instructions = read.instructions.map((message) => {
    const content = JSON.stringify(message.source);
    return { digest: deps.hash(content), content };
  });
  const written = new Map<string, number>();
  const writer = new TurnWriter(deps.ledger, placed.conversation, options.advanceHead);
  const opened = await writer.open({
    policy,
    chain: placed.chain,
    node: chainNodeBuilder({ spine, spawner: options.caller, counter, written }),
    instructions,
    model: read.model,
    tokenizer: counter?.tokenizer ?? null,
  });
  const commands = new Set(opened.commands);
  const known = spine.map((node) => (commands.has(node.id) ? { ...node, command: true } : node));
  const measure = createMeasure({
    dialect,
    read,
    spine: known,
    stored: opened.counts,
    written,
    loadCounter: () => deps.loadCounter(read.model),
  });
  return {
    ...incoming,
    conversation: placed.conversation,
    policy,
    spine: known,
    wire: placed.wire,
    thin: options.append,
    instructionDigests: instructions.map((instruction) => instruction.digest),
    hash: deps.hash,
    purse: createPurse(deps.purse, deps.clock),
    opened,
    belief,
    limits: limitsOf(belief, read, calibrationOf(opened.match)),
    measure,
    writer,
  };
}

function limitsOf(belief: ModelBelief, read: ReadRequest, calibration: number): Limits | null {
  const { windowTokens, capability } = belief;
  if (windowTokens === null) return null;
  return { windowTokens, reserveTokens: reserveTokens(windowTokens, read.outputCap, capability), calibration };
}

/** Nodes are counted while they are written only where the bytes alone do not show that all fits (SPEC 7.9). */
async function counterIfNeeded(
  incoming: Incoming,
  belief: ModelBelief,
  deps: OpenTurnDeps,
): Promise<TokenCounter | null> {
  const limits = limitsOf(belief, incoming.read, 1);
  if (limits === null) return null;
  const media = [...incoming.read.instructions, ...incoming.read.messages].flatMap((message) => message.media);
  const bound = byteBound(incoming.body.textBytes, media);
  if (bound !== null && !incoming.options.append && budgetShare(bound, limits) < deps.trigger) return null;
  return deps.loadCounter(incoming.read.model);
}

function placeFull(incoming: Incoming, hash: Hash): Placed {
  const { read, options, tenant, dialect, request } = incoming;
  const { conversation, chain } = identify({
    tenant,
    dialect: dialect.name,
    messages: read.messages,
    named: options.conversation,
    session: sessionOf(request.headers) ?? read.session,
    hash,
  });
  return { conversation, chain, messages: read.messages, wire: keptItems(read), commands: new Set() };
}

/** SPEC 1.6: the request's messages follow HEAD, or the node it names, and the ledger supplies what is before. */
async function placeThin(incoming: Incoming, policy: SummaryPolicy, deps: OpenTurnDeps): Promise<Placed> {
  const { read, options, tenant, dialect } = incoming;
  const named = options.conversation ?? '';
  const key = { tenant, id: namedId(deps.hash, tenant, named) };
  const stored = await storedSpine(key, options.predecessor, policy, deps.ledger);
  const root = rootDigest(deps.hash, tenant, dialect.name, CANONICAL_VERSION);
  const before = stored === null ? [] : await withoutIncompleteReply(stored, deps.ledger);
  const end = before.at(-1)?.id;
  if (end !== undefined && options.predecessor === null) deps.running.refuseAt(key, end);
  const nodes = withoutUnanswered(before, root, read.messages, deps.hash);

  const sources = nodes.map((node): unknown => JSON.parse(node.content));
  const earlier = sources.map((source) => {
    const message = dialect.readMessage(source);
    if (message === null)
      throw new SpillwayError('store_unavailable', 'a stored message cannot be read in this dialect');
    return message;
  });
  return {
    conversation: stored?.conversation ?? {
      ...key,
      dialect: dialect.name,
      canonicalVersion: CANONICAL_VERSION,
      name: named === key.id ? null : named,
      session: sessionOf(incoming.request.headers) ?? read.session,
    },
    messages: [...earlier, ...read.messages],
    chain: [...nodes.map((node) => node.id), ...chainIds(deps.hash, nodes.at(-1)?.id ?? root, read.messages)],
    wire: [...sources.map((source): WireMessage => ({ kind: 'stored', source })), ...keptItems(read)],
    commands: new Set(nodes.filter(isCommand).map((node) => node.id)),
  };
}

/** Null: there is no such conversation yet, and the first message starts it. */
async function storedSpine(
  key: { readonly tenant: string; readonly id: string },
  predecessor: string | null,
  policy: SummaryPolicy,
  ledger: Ledger,
): Promise<Spine | null> {
  if (predecessor === null && (await ledger.conversation(key.id, key.tenant)) === null) return null;
  return ledger.spine(key, predecessor, policy);
}

/** SPEC 2.3: where the ledger supplies the view, a reply that never came to its end is left out. */
async function withoutIncompleteReply(spine: Spine, ledger: Ledger): Promise<readonly Node[]> {
  const last = spine.nodes.at(-1);
  if (last?.role !== 'llm') return spine.nodes;
  const calls = await ledger.callsOfReply(spine.conversation, last.id);
  const incomplete = calls.length > 0 && calls.every((call) => call.outcome !== 'complete');
  return incomplete ? spine.nodes.slice(0, -1) : spine.nodes;
}

/**
 * A client that got no answer sends its messages again, and meets the same nodes (SPEC 1.4): where the spine ends in these very
 * messages, they are the ones.
 */
function withoutUnanswered(
  nodes: readonly Node[],
  root: string,
  messages: readonly Message[],
  hash: Hash,
): readonly Node[] {
  const before = nodes.slice(0, -messages.length);
  if (before.length !== nodes.length - messages.length) return nodes;
  const ids = chainIds(hash, before.at(-1)?.id ?? root, messages);
  return ids.every((id, index) => id === nodes[before.length + index]?.id) ? before : nodes;
}

function keptItems(read: ReadRequest): readonly WireMessage[] {
  return read.messages.map((_, index) => ({ kind: 'kept', index: read.instructions.length + index }));
}

/** The spine with the commands known so far: told by the ledger, proven by a tag, or the last message itself. */
function spineOf(placed: Placed, deps: OpenTurnDeps): readonly SpineNode[] {
  const tagged = new Set(taggedCommands(placed.chain, placed.messages, deps.sign));
  const lastIndex = placed.messages.length - 1;
  return placed.messages.map((message, index) => {
    const id = placed.chain[index] ?? '';
    const asks = index === lastIndex && deps.readsCommands && readCompactCommand(message) !== null;
    return { id, message, command: asks || tagged.has(index) || placed.commands.has(id) };
  });
}
