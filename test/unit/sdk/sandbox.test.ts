/** The SDK's sandboxes, against a scripted service. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Roomd, Sandbox } from "../../../sdk/typescript/src/index.ts";
import { RoomdSandboxClient } from "../../../sdk/typescript/src/openai-agents.ts";
import { type Asked, ok, problem, type Reply, ScriptedService } from "./scripted-service.ts";

let service: ScriptedService;
let roomd: Roomd;
/** Replies to each call, by its method and path; the first of a list is sent first. */
let answers: Record<string, (Reply | null)[]>;

const sandbox = (state: string): Reply =>
  ok({ room_id: "a", sandbox_id: "sbx_1", agent_id: "w", state, status: { message: "No guest." } });

function answerTo({ method, path }: Asked): Reply | null {
  const replies = answers[`${method} ${path.split("?")[0]}`] ?? [];
  const reply = replies.length > 1 ? replies.shift() : replies[0];
  return reply === undefined ? problem(404, "sandbox_not_found", false) : reply;
}

beforeEach(async () => {
  answers = {};
  service = await ScriptedService.start(answerTo);
  roomd = new Roomd({ url: service.url });
});
afterEach(() => {
  roomd.close();
  service.stop();
});

describe("a sandbox with a room to itself", () => {
  const ROOMS = "POST /v1/rooms";
  const ended = () => service.asked.filter(({ method }) => method === "DELETE");
  /** Its room has a name that is made here. */
  const createOwn = (options = {}) => Sandbox.create({ url: service.url, memoryMib: 512, ...options });

  test("leaves no room if its caller aborts", async () => {
    answers = { [ROOMS]: [null] };
    const left = new AbortController();
    const made = createOwn({ signal: left.signal });
    await vi.waitFor(() => expect(service.bodies()).toHaveLength(1));
    left.abort(new Error("gone"));
    await expect(made).rejects.toThrow("gone");
    expect(ended().map(({ path }) => path)).toEqual([`/v1/rooms/${service.bodies()[0]?.room_id}?drive=delete`]);
  });

  test("uses its client's options for calls, and the call's for the end", async () => {
    const place = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
    answers = { [ROOMS]: [ok({ room_id: "a" })] };
    // By which its name is known before.
    const key = { idempotencyKey: "k" };
    await roomd.rooms.create(key);
    const name = String(service.bodies()[0]?.room_id);
    answers[`POST /v1/rooms/${name}/sandboxes/from-template`] = [sandbox("running")];
    const made = await createOwn({ ...key, userAgent: "mine/1", traceparent: place });
    const { headers } = service.asked.at(-1) as Asked;
    expect([headers["user-agent"], headers.traceparent]).toEqual(["mine/1", place]);
    await expect(made.destroy({ signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
    expect(ended()).toEqual([]);
  });

  test("of an agents' client uses its options", async () => {
    answers = { [ROOMS]: [problem(403, "forbidden", false)] };
    await expect(new RoomdSandboxClient({ url: service.url, userAgent: "mine/1" }).create()).rejects.toThrow();
    expect(service.asked[0]?.headers["user-agent"]).toBe("mine/1");
  });
});

test("a message is retried according to its caller's options", async () => {
  answers = { "POST /v1/rooms/a/messages": [problem(503, "not_ready", true)] };
  const sent = roomd.rooms.open("a").send("w", 1, { retry: { after: "interrupted" } });
  await expect(sent).rejects.toMatchObject({ code: "not_ready" });
  expect(service.asked).toHaveLength(1);
});

test("a forked room ends with its block", async () => {
  answers = { "POST /v1/rooms/a/fork": [ok({})] };
  {
    await using fork = await roomd.rooms.open("a").fork("b");
    expect(fork.id).toBe("b");
  }
  expect(service.asked.at(-1)).toMatchObject({ method: "DELETE", path: "/v1/rooms/b?drive=delete" });
});
