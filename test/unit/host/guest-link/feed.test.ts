/** Standard input for a command while its client disconnects. */
import { expect, test, vi } from "vitest";
import { feedInGuest } from "../../../../daemon/host/guest-link/exec.ts";
import type { Stream } from "../../../../shared/agent-protocol/link.ts";
import { PlayedAgent, stateOf } from "../../domain/executions/agent-fixture.ts";

/** An agent that receives a request, and answers on demand. */
function slowAgent() {
  const opened = Promise.withResolvers<Stream>();
  const agent = new PlayedAgent((stream) => opened.resolve(stream));
  return { agent, asked: opened.promise };
}

test("its close succeeds after its client has disconnected: the command is ending", async () => {
  const { agent, asked } = slowAgent();
  const left = new AbortController();
  const closed = feedInGuest(agent.link, { exec_id: "e", offset: 0, eof: true }, Buffer.alloc(0), left.signal);
  const stream = await asked;
  left.abort();
  stream.finish({ execution: stateOf("e", { state: "exited", finished_at_ms: 1 }) });
  expect(await closed).toMatchObject({ exec_id: "e", state: "exited" });
  agent.link.close("over");
});

test("bytes are aborted with the reason of the disconnect, which is not attributed to the guest", async () => {
  const { agent, asked } = slowAgent();
  const left = new AbortController();
  const fed = feedInGuest(agent.link, { exec_id: "e", offset: 0, eof: false }, Buffer.from("x"), left.signal);
  fed.catch(() => {});
  const stream = await asked;
  const reason = new Error("the client left");
  left.abort(reason);
  await expect(fed).rejects.toBe(reason);
  await vi.waitFor(() => expect(stream.ended).toBe(true));
  agent.link.close("over");
});
