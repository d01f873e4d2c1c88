/** agent_send: sends a message to its destinations, and with wait_reply returns the reply. */

import type { InputOf } from "../../../shared/api/contract.ts";
import { agentSend, DEFAULT_REPLY_WAIT_MS, EVERYONE, TOPIC_PATTERN } from "../../../shared/api/fabric.ts";
import { AGENT_PATTERN } from "../../../shared/ids.ts";
import { type Bound, bind, type RuleBreak } from "../../core/operation.ts";
import { requireActive } from "../../core/room-target.ts";
import { actingAs } from "../agents/index.ts";
import type { FabricDeps } from "./deps.ts";
import { type Address, contentRules, makeDraft, namedBy } from "./draft.ts";
import { findRoom, requireMessage } from "./find.ts";
import { post } from "./post.ts";
import { receiptOf, toMessage } from "./record.ts";
import type { MessageRow } from "./table.ts";
import { tellRead, traceOf } from "./trace.ts";
import { awaitReply, waitForReply } from "./wait-reply.ts";

type Input = InputOf<typeof agentSend>;

export function makeSend(deps: FabricDeps): Bound {
  const { queries } = deps.database;
  return bind(agentSend, {
    find: (call, params) => findRoom(deps, call, params),
    rules: (input) => [...addressRules(input), ...contentRules(input)],
    run: async (call, input, room) => {
      requireActive(room);
      const source = actingAs(call.caller, input.source, "source");
      const kind = input.kind ?? (input.wait_reply ? "request" : input.reply_to === undefined ? "event" : "response");
      const draft = makeDraft(namedBy(call.work, input), {
        source,
        kind,
        reply_to: input.reply_to ?? null,
        ...addressOf(input),
      });
      call.trace.follow(traceOf(input.headers));
      if (draft.reply_to !== null) call.trace.answer(traceOf(requireMessage(deps, room, draft.reply_to).headers));
      call.audit.agent_id = source;
      const { size_bytes, payload_sha256 } = draft;
      const waits = input.wait_reply ? { wait_ms: input.timeout_ms ?? DEFAULT_REPLY_WAIT_MS } : {};
      call.audit.details = { kind, ...shownAddress(draft), size_bytes, payload_sha256, ...waits };
      const recipient = input.wait_reply ? (draft.destination ?? draft.destinations?.[0] ?? null) : null;
      const wait = recipient === null ? null : waitForReply(source, recipient);
      try {
        const note = ({ message_id, seq, recipients }: MessageRow) =>
          Object.assign(call.audit.details, {
            message_id,
            seq,
            recipients: recipients.length,
            ...shownTo(draft, recipients),
          });
        const { row, isNew } = await post(deps, room, draft, {
          caller: call.caller,
          signal: () => call.signal,
          trace: call.trace,
          also: (_, { message_id }) => {
            if (!wait) return;
            wait.shown.id = message_id;
            deps.agents.waits.enter(room.room_uid, wait);
          },
          kept: (row) => {
            note(row);
            if (!wait) call.work.keep("accepted", receiptOf(queries, row, true));
          },
        });
        note(row);
        const receipt = receiptOf(queries, row, isNew);
        if (recipient === null) return { outcome: isNew ? "accepted" : "known", body: receipt };
        const deadlineMs = input.timeout_ms ?? DEFAULT_REPLY_WAIT_MS;
        const reply = await awaitReply(deps, row, {
          ...{ source, recipient, deadlineMs, signal: call.signal },
          isFirst: (found) => tellRead(deps.traces, { agent_id: source, ...room, trace: call.trace }, found),
        });
        return { outcome: "replied", body: { ...receiptOf(queries, row, false), reply: toMessage(reply) } };
      } finally {
        if (wait) deps.agents.waits.leave(room.room_uid, wait);
      }
    },
  });
}

/** An empty or null destination or topic counts as absent. */
function addressOf(input: Partial<Input>): Address {
  const destinations = input.destinations?.length ? input.destinations : null;
  return { destination: input.destination || null, destinations, topic: input.topic || null };
}

const TOPIC = new RegExp(TOPIC_PATTERN);
const AGENT = new RegExp(AGENT_PATTERN);
const isAddress = (destination: string) => destination === EVERYONE || AGENT.test(destination);

function addressRules(input: Partial<Input>): RuleBreak[] {
  const address = addressOf(input);
  const given = Object.entries(address).flatMap(([name, value]) => (value === null ? [] : [name]));
  if (given.length === 0) {
    return [{ field: "destination", code: "required", message: "Send a destination, destinations or a topic." }];
  }
  if (given.length > 1) {
    const message = `Send one of ${given.join(" and ")}, not both.`;
    return [{ field: String(given[1]), code: "conflicting_fields", message }];
  }
  const wrong = [
    address.destination === null || isAddress(address.destination) ? null : "destination",
    address.topic === null || TOPIC.test(address.topic) ? null : "topic",
  ].find((field) => field !== null);
  if (wrong) return [{ field: wrong, code: "pattern", message: `${wrong} is not a valid name.` }];
  const one = address.destination === null ? address.destinations?.length === 1 : address.destination !== EVERYONE;
  if (input.wait_reply && !one) {
    return [{ field: "wait_reply", code: "one_recipient", message: "wait_reply is for a message to one agent." }];
  }
  return [];
}

/** Whom it went to, where the address does not say that. */
function shownTo({ topic, destination }: Address, recipients: readonly string[]): Record<string, unknown> {
  return topic !== null || destination === EVERYONE ? { to: recipients.slice(0, 16) } : {};
}

/** A long list is not for a record. */
function shownAddress({ destination, destinations, topic }: Address): Record<string, unknown> {
  if (topic !== null) return { topic };
  return destination === null ? { destinations: destinations?.slice(0, 16) } : { destination };
}
