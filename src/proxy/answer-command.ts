import { estimateView } from '../core/estimate.js';
import type { Clock, Directory, Hash, UniqueId } from '../core/ports.js';
import { render } from '../core/render.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import { compactAnswer } from './command.js';
import { spineOfTurn, withoutWindow } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import { signsOfLife } from './keep-alive.js';
import type { PatientSink } from './keep-alive.js';
import { limitsWithoutWindow } from './prepare.js';
import { referencesTo } from './references.js';
import type { RequestLog } from './request-log.js';
import { infoHeaders } from './response-info.js';
import type { Sign } from './tenant.js';
import { replyNodes } from './turn-nodes.js';
import type { Turn } from './turn.js';

export interface AnswerCommandDeps {
  readonly directory: Pick<Directory, 'refer'>;
  readonly compactSpine: CompactSpine;
  readonly hash: Hash;
  readonly sign: Sign;
  readonly uniqueId: UniqueId;
  readonly clock: Clock;
  now(): number;
}

/**
 * Compacts because the user said so and answers as the assistant would (SPEC 4.9, 5): streamed if the client streams. The
 * answer is durable before it is sent.
 */
export async function answerCompact(
  turn: Turn,
  userWish: string | null,
  sink: PatientSink,
  log: RequestLog,
  deps: AnswerCommandDeps,
): Promise<void> {
  const { active } = turn.opened;
  const estimate = estimateView(render(turn.spine, active), await turn.measure.ruler());
  const limits = turn.limits ?? limitsWithoutWindow(turn, estimate);
  const done = await sink.waitFor(
    deps.compactSpine.run(spineOfTurn(turn), {
      active,
      reduction: NO_REDUCTION,
      trigger: 'manual',
      waits: true,
      aim: 'window',
      limits,
      userWish,
    }),
    signsOfLife(turn, deps),
  );
  const report = turn.limits === null ? withoutWindow(done) : done;

  const command = turn.spine.at(-1)?.id ?? '';
  const text = compactAnswer(report, command, deps.sign);
  const form = { model: turn.read.model, id: deps.uniqueId(), createdAt: deps.clock() };
  const whole = turn.dialect.answer(text, { ...form, stream: false });
  const body = turn.read.stream ? turn.dialect.answer(text, { ...form, stream: true }) : whole;
  const reply = turn.dialect.readReply(JSON.parse(whole));
  const messages = reply?.messages ?? [];
  const follows = reply?.follows ?? false;
  const replies = replyNodes(deps.hash, command, messages, { follows, command: true, counter: null });
  const { head } = await turn.writer.close({
    call: null,
    reduction: null,
    replies,
    counts: turn.measure.freshCounts(),
    tokenizer: turn.measure.tokenizer(),
    marks: [],
  });
  const references = referencesTo(turn.conversation.id, reply, messages, replies);
  if (references.length > 0) await deps.directory.refer(turn.conversation.tenant, references);
  const figure = (tokens: number | null) => (tokens === null ? null : ({ tokens, kind: 'estimate' } as const));
  sink.start(200, [
    ['content-type', turn.read.stream ? 'text/event-stream; charset=utf-8' : 'application/json'],
    ...infoHeaders({
      conversation: turn.conversation.id,
      head,
      call: null,
      action: 'manual',
      prepared: {
        before: figure(report.tokensBefore ?? estimate),
        after: figure(report.tokensAfter ?? report.tokensBefore ?? estimate),
        replaced: 0,
      },
      overflow: null,
      limitTokens: null,
      overheadMs: deps.now() - turn.request.arrivedAt,
      storeUnavailable: false,
    }),
  ]);
  await sink.write(new TextEncoder().encode(body));
  await sink.end();
  log.add({ status: 200, head, action: 'manual', compaction: report.outcome, compactionReason: report.reason });
}
