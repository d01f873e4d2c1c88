/** A message and its record are kept together: by one commit, or not at all. */
import { expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";

test("a kill before the commit loses message and record; an acknowledged message has its record once", async () => {
  await using daemon = await TestDaemon.start();
  await daemon.room("r");
  const path = "/v1/rooms/r/messages";
  const send = (payload: string) => daemon.api("POST", path, { source: "a", destination: "a", payload });
  const kept = async () => {
    const { items } = await daemon.ok("GET", `${path}?agent_id=a`);
    return items.map(({ payload, message_id }: Json) => [payload, message_id]);
  };
  const recorded = async () => {
    const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=message.&order=asc");
    return items.flatMap(({ event, details }: Json) => (/sent|replied/.test(event) ? [details.message_id] : []));
  };

  daemon.env[FAULT_VARIABLE] = "audit.recorded=kill";
  await daemon.restart("SIGTERM");
  await expect(send("lost")).rejects.toThrow();
  delete daemon.env[FAULT_VARIABLE];
  await daemon.restart("SIGKILL");
  expect([await kept(), await recorded()]).toEqual([[], []]);

  const { body } = await send("kept");
  const reply = await daemon.ok("POST", `${path}/${body.message_id}/reply`, { source: "a", payload: "too" });
  // A message that was replied to has left the inbox.
  expect(await kept()).toEqual([["too", reply.message_id]]);
  expect(await recorded()).toEqual([body.message_id, reply.message_id]);

  // Refused, it has a record of that, and nothing else.
  expect((await daemon.api("POST", path, { source: "a", destination: "nobody", payload: null })).status).toBe(404);
  const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=message.sent&order=asc");
  expect(items.map(({ outcome, status }: Json) => [outcome, status])).toEqual([
    ["success", 202],
    ["error", 404],
  ]);
  expect((await daemon.ok("GET", `/v1/orgs/${daemon.orgId}/audit/verify`)).ok).toBe(true);
});
