/** Records that make the receipts of a message stale: records about it, and agents that read, but not messages of others. */
import { expect, test } from "vitest";
import { isTouched } from "../../../daemon/web/room/messages/touched.ts";

const record = (event: string, details: Record<string, unknown>, agent_id: string | null = "worker") => ({
  event,
  agent_id,
  details,
});

test("an ack, a reply and an agent's read touch a message", () => {
  for (const each of [
    record("message.acked", { message_id: "m1", seq: 1 }),
    record("message.replied", { message_id: "m2", reply_to: "m1" }),
    record("message.read", {}),
  ]) {
    expect(isTouched("m1", each)).toBe(true);
  }
});

test("records of others, and reads of the room, touch no message", () => {
  for (const each of [
    record("message.sent", { message_id: "m2", seq: 2 }),
    record("message.replied", { message_id: "m3", reply_to: "m2" }),
    record("message.acked", { message_id: "m2", seq: 2 }),
    record("message.agents_listed", {}),
    record("message.read", {}, null),
    record("exec.finished", { message_id: "m1" }),
  ]) {
    expect(isTouched("m1", each)).toBe(false);
  }
});
