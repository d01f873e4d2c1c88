/** The SDK's sandboxes, against a service that answers what it is told to. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Roomd, RoomdError } from "../../../sdk/typescript/src/index.ts";
import { type Asked, ok, problem, type Reply, ScriptedService } from "./scripted-service.ts";

let service: ScriptedService;
let roomd: Roomd;
/** What each call is answered, by its method and path; what stands first of a list comes first. */
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

const create = (options = {}) => roomd.rooms.open("a").createSandbox("w", { memoryMib: 512, ...options });
const CREATE = "POST /v1/rooms/a/sandboxes/from-template";
const GET = "GET /v1/rooms/a/sandboxes/sbx_1";

describe("a sandbox that is created", () => {
  test("is waited for until it runs commands", async () => {
    answers = { [CREATE]: [sandbox("creating")], [GET]: [sandbox("starting"), sandbox("running")] };
    await create();
    expect(service.asked.map(({ method }) => method)).toEqual(["POST", "GET", "GET"]);
    expect(service.asked[1]?.path).toContain("?wait_ms=50000");
  });

  test("is asked for no more once it runs", async () => {
    answers = { [CREATE]: [sandbox("running")] };
    await create();
    expect(service.asked).toHaveLength(1);
  });

  test("is waited for as long as the caller says", async () => {
    answers = { [CREATE]: [sandbox("starting")], [GET]: [sandbox("starting")] };
    await expect(create({ timeoutMs: 300 })).rejects.toMatchObject({ name: "TimeoutError" });
  });

  test("and has failed, or is gone, is told", async () => {
    answers = { [CREATE]: [sandbox("starting")], [GET]: [sandbox("failed")] };
    await expect(create()).rejects.toThrow(new RoomdError("The sandbox is failed: No guest."));
    answers = { [CREATE]: [sandbox("starting")] };
    await expect(create()).rejects.toMatchObject({ code: "sandbox_not_found" });
  });
});
