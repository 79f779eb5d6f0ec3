import { summaryMessage } from './chat-summary.js';
import type { CompactionForm } from './dialect.js';
import { applyEdits, valueAt, type Edit } from './json-edits.js';
import { elementSpans, memberSpans } from './json-spans.js';
import { isJsonObject } from './json-value.js';
import { compactionBody, outputBody } from './responses-answer.js';
import { typeOf } from './responses-item.js';

/** Compaction by the provider, as the Responses API has it. */
export const responsesCompaction: CompactionForm = {
  path: '/responses/compact',
  trigger: 'compaction_trigger',
  expand(text, standsFor) {
    const input = memberSpans(text).get('input');
    if (input === undefined) return text;
    let isFirst = true;
    const edits = elementSpans(text, input.start).flatMap((span, index): readonly Edit[] => {
      const item = valueAt(text, span);
      const content = isJsonObject(item) && typeOf(item) === 'compaction' ? item['encrypted_content'] : null;
      const asked = { content, field: `input[${index}].encrypted_content`, isFirst };
      isFirst &&= isJsonObject(item) && (item['role'] === 'system' || item['role'] === 'developer');
      const summary = typeof asked.content === 'string' ? standsFor({ ...asked, content: asked.content }) : null;
      if (summary === null) return [];
      // The field `instructions`, which is no item, comes with each request.
      const pinned = summary.pinned.filter((source) => typeOf(source) !== null);
      const items = [...pinned, summaryMessage(summary.content).source];
      return [{ ...span, text: items.map((source) => JSON.stringify(source)).join(',') }];
    });
    return applyEdits(text, edits);
  },
  answer(content, reply) {
    const item = { id: `cmp_${reply.id}`, type: 'compaction', encrypted_content: content };
    return reply.alone ? compactionBody([item], reply) : outputBody([item], reply);
  },
};
