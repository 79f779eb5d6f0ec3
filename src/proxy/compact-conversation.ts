import { reserveTokens } from '../core/budget.js';
import { createPurse } from '../core/compaction/purse.js';
import { SpillwayError } from '../core/errors.js';
import { estimateView, messageTokens, textsOf } from '../core/estimate.js';
import type { Ruler } from '../core/estimate.js';
import { isCommand } from '../core/node.js';
import type { Node } from '../core/node.js';
import type { Call, Clock, Conversation, Instruction, Ledger, SummaryPolicy, TokenCounter } from '../core/ports.js';
import { render } from '../core/render.js';
import type { SpineNode } from '../core/render.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import type { WindowScope } from '../core/windows.js';
import type { Dialect, DialectName } from '../dialects/dialect.js';
import type { PatientCounter } from '../tokens/counter.js';
import { withoutWindow } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { policyFor } from './identify.js';
import { assumedLimits } from './prepare.js';
import type { UpstreamRoute } from './request.js';
import type { ModelBelief } from './turn.js';

export interface CompactConversationRequest {
  readonly instructions: string | null;
  /** Null: HEAD. */
  readonly head: string | null;
  /** Headers with a provider's credential, perhaps none. */
  readonly credential: Readonly<Record<string, string>>;
}

export interface CompactConversationDeps {
  readonly ledger: Ledger;
  readonly compactSpine: CompactSpine;
  readonly dialects: ReadonlyMap<DialectName, Dialect>;
  readonly policy: SummaryPolicy | 'auto';
  readonly summaryKey: string | null;
  readonly clock: Clock;
  readonly purse: { readonly calls: number; readonly durationMs: number };
  /** The configured upstream with this base URL; null if it is configured no more. */
  route(baseUrl: string): UpstreamRoute | null;
  belief(scope: WindowScope, model: string): Promise<ModelBelief>;
  loadCounter(model: string): Promise<PatientCounter>;
}

/**
 * Manual compaction through the API (SPEC 5): of HEAD's spine or a named head's, for the model and the upstream of the
 * conversation's latest call. Rejects with `no_credential`, `node_not_found`, `invalid_request`.
 */
export async function compactConversation(
  conversation: Conversation,
  request: CompactConversationRequest,
  deps: CompactConversationDeps,
): Promise<CompactionReport> {
  const { ledger } = deps;
  const dialect = [...deps.dialects.values()].find((candidate) => candidate.name === conversation.dialect);
  const call = (await ledger.calls(conversation, 1)).at(-1);
  if (dialect === undefined || call === undefined) {
    throw new SpillwayError('invalid_request', 'nothing was sent to a model in this conversation yet', 'id');
  }
  const upstream = deps.route(call.upstream);
  if (upstream === null)
    throw new SpillwayError(
      'invalid_request',
      `the upstream of this conversation, ${call.upstream}, is configured no more`,
      'id',
    );
  if (Object.keys(request.credential).length === 0 && upstream.apiKey === null && deps.summaryKey === null) {
    throw new SpillwayError(
      'no_credential',
      'a summary costs a request to the provider: send its key, or set SPILLWAY_SUMMARY_KEY',
      'authorization',
    );
  }
  const policy = policyFor(conversation.name, deps.policy);
  const { nodes, active } = await ledger.spine(conversation, request.head, policy);
  const spine = nodes.map((node) => spineNode(node, dialect));
  const [loaded, belief, instructions] = await Promise.all([
    deps.loadCounter(call.model),
    deps.belief({ tenant: conversation.tenant, upstream: upstream.baseUrl }, call.model),
    instructionsOf(conversation, call, ledger),
  ]);
  const viewStart = active === null ? 0 : spine.findIndex((node) => node.id === active.last) + 1;
  const counter = await loaded.ahead([
    ...instructions.map((instruction) => instruction.content),
    ...spine.slice(viewStart).flatMap((node) => textsOf(node.message)),
  ]);
  const ruler = rulerOf(spine, instructions, dialect, counter);
  const estimate = estimateView(render(spine, active), ruler);
  const window = belief.windowTokens;
  const report = await deps.compactSpine.run(
    {
      conversation,
      policy,
      spine,
      dialect,
      model: call.model,
      upstream,
      headers: request.credential,
      // An upstream that takes no call without a query has it in its base URL: a client's may hold a key, so none is kept.
      query: '',
      ruler: () => Promise.resolve(ruler),
      counter: () => Promise.resolve(counter),
      purse: createPurse(deps.purse, deps.clock),
      closed: new AbortController().signal,
    },
    {
      active,
      reduction: NO_REDUCTION,
      trigger: 'manual',
      waits: true,
      aim: 'window',
      limits:
        window === null
          ? assumedLimits(estimate, null, belief.capability)
          : { windowTokens: window, reserveTokens: reserveTokens(window, null, belief.capability), calibration: 1 },
      userWish: request.instructions,
    },
  );
  return window === null ? withoutWindow(report) : report;
}

function spineNode(node: Node, dialect: Dialect): SpineNode {
  const message = dialect.readMessage(JSON.parse(node.content));
  if (message === null) throw new SpillwayError('store_unavailable', 'a stored message cannot be read in this dialect');
  return { id: node.id, message, command: isCommand(node) };
}

async function instructionsOf(conversation: Conversation, call: Call, ledger: Ledger): Promise<readonly Instruction[]> {
  const found = await Promise.all(call.manifest.instructions.map((digest) => ledger.instruction(conversation, digest)));
  return found.filter((instruction) => instruction !== null);
}

/** The stored part of a request: its tools and schema are the client's alone, so they count for nothing here. */
function rulerOf(
  spine: readonly SpineNode[],
  instructions: readonly Instruction[],
  dialect: Dialect,
  counter: TokenCounter,
): Ruler {
  const counts = new Map<number, number>();
  return {
    fixedTokens: instructions.reduce((sum, instruction) => sum + counter.count(instruction.content), 0),
    tokensAt(index) {
      const node = spine[index];
      const known = counts.get(index) ?? (node === undefined ? 0 : messageTokens(node.message, counter));
      counts.set(index, known);
      return known;
    },
    summaryTokens: (content) => messageTokens(dialect.summaryMessage(content), counter),
  };
}
