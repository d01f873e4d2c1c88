/** message_send_many: sends messages in order, all or none of them. */
import type { FieldError } from "../../../shared/api/errors.ts";
import { MAX_BATCH_TOPICS, messageSendMany } from "../../../shared/api/fabric.ts";
import type { AuditFacts } from "../../core/call/audit-facts.ts";
import { type Bound, bind, type KeyCall, type RuleBreak } from "../../core/call/operation.ts";
import { findRoom, type RoomTarget, requireActive } from "../../core/call/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import { addressOf, addressRules } from "./address.ts";
import type { FabricDeps } from "./deps.ts";
import { contentRules, type Draft } from "./draft.ts";
import { callsForRecipients, type Posted, postAll } from "./post.ts";
import { draftOf, factsOf, keptFactsOf, type Preparation } from "./prepare.ts";
import { receiptOf } from "./record.ts";
import type { MessageRow } from "./table.ts";

export function makeSendMany(deps: FabricDeps): Bound {
  const { queries } = deps.database;
  return bind(messageSendMany, {
    find: (call, params) => findRoom(deps, call, params),
    rules: ({ messages = [] }, _, bad) => rulesOf(messages, bad),
    moreCalls: ({ messages }, room) => callsForRecipients(deps, room, messages.map(addressOf)),
    run: async (call, { messages }, room) => {
      requireActive(room);
      call.audit.details = { messages: messages.length };
      requireSources(call, messages);
      const drafts = draftsOf(deps, call, room, messages);
      const [source, ...others] = new Set(drafts.map((draft) => draft.source));
      if (source !== undefined && others.length === 0) call.audit.agent_id = source;
      const receipts = (posted: readonly Posted[]) => ({
        messages: posted.map(({ row, isNew }) => receiptOf(queries, row, isNew)),
      });
      const posted = await postAll(deps, room, drafts, {
        caller: call.caller,
        signal: () => call.signal,
        trace: call.trace,
        refused: refusedAt,
        kept: (posted) => {
          const records = posted.map(({ row }, index) => recordOf(call.audit, drafts[index] as Draft, row));
          call.work.keep(outcomeOf(posted), receipts(posted), records);
        },
      });
      return { outcome: outcomeOf(posted), body: receipts(posted) };
    },
  });
}

const outcomeOf = (posted: readonly Posted[]) => (posted.some(({ isNew }) => isNew) ? "accepted" : "known");
const placeOf = (index: number) => `messages[${index}]`;

/** `messages` are the valid parts of each. */
function rulesOf(messages: readonly Partial<Preparation>[], bad: readonly RuleBreak[]): RuleBreak[] {
  const broken = messages.flatMap((message, index) => {
    const place = placeOf(index);
    if (bad.some(({ field }) => field === place)) return [];
    const content = contentRules(message).map((rule) => ({ ...rule, field: `${place}.${rule.field}` }));
    return [...addressRules(message, bad, `${place}.`), ...content];
  });
  const topics = new Set(messages.map(({ topic }) => topic || null).filter((topic) => topic !== null));
  if (topics.size <= MAX_BATCH_TOPICS) return broken;
  const message = `The messages of a batch have at most ${MAX_BATCH_TOPICS} different topics.`;
  return [...broken, { field: "messages", code: "too_many_topics", message }];
}

/** Throws validation_failed with all messages without a source, if the caller is no agent. */
function requireSources({ caller }: KeyCall, messages: readonly Preparation[]): void {
  if (caller.agent_id !== null) return;
  const errors = messages.flatMap(({ source }, index): FieldError[] => {
    const field = `${placeOf(index)}.source`;
    return source === undefined ? [{ field, code: "required", message: `${field} is required.` }] : [];
  });
  const [first] = errors;
  if (!first) return;
  const detail = errors.length === 1 ? first.message : `${errors.length} fields are not valid; see errors.`;
  throw new ServiceError("validation_failed", { detail, errors });
}

/** Throws the first refused message's error: source_mismatch, message_not_found, payload_too_large. */
function draftsOf(deps: FabricDeps, call: KeyCall, room: RoomTarget, messages: readonly Preparation[]): Draft[] {
  const drafts: Draft[] = [];
  for (const [index, message] of messages.entries()) {
    try {
      drafts.push(draftOf(deps, call, room, message, { before: drafts }));
    } catch (error) {
      throw refusedAt(error, index);
    }
  }
  return drafts;
}

/** The error of one message, with its position in the batch. */
function refusedAt(error: unknown, index: number): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { detail = error.message, details } = error.options;
  return new ServiceError(error.code, {
    ...error.options,
    detail: `${placeOf(index)}: ${detail} No message of the batch was sent.`,
    details: { ...details, index },
    cause: error,
  });
}

function recordOf(call: AuditFacts, draft: Draft, row: MessageRow): AuditFacts {
  return { ...call, agent_id: draft.source, details: { ...factsOf(draft), ...keptFactsOf(draft, row) } };
}
