/** The drop-in for E2B's SDK: the calls that it makes, and its answers, against a service that answers by a script. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Sandbox, TimeoutError } from "../../../sdk/typescript/src/e2b.ts";
import { type Asked, ok, problem, type Reply, ScriptedService } from "./scripted-service.ts";

let service: ScriptedService;
let answer: (request: Asked) => Reply | null;

const record = (more = {}) => ({
  ...{ room_id: "a", sandbox_id: "sbx_1", agent_id: "main", state: "running", status: { message: "" } },
  ...{
    template_id: "default",
    created_at: "2026-11-29T10:00:00.000Z",
    expires_at: null,
    vcpu_count: 2,
    memory_mib: 512,
  },
  ...{ labels: { "roomd-sdk/own": "true" }, ...more },
});
const isGet = ({ method, path }: Asked) => method === "GET" && path.endsWith("/sandboxes/main");
const calls = () => service.asked.map(({ method, path }) => `${method} ${path}`);
const options = () => ({ apiUrl: service.url, apiKey: "key-1" });

beforeEach(async () => {
  answer = () => ok(record());
  service = await ScriptedService.start((request) => answer(request));
});
afterEach(() => service.stop());

describe("kill", () => {
  const notFound = () => problem(404, "sandbox_not_found", false);

  test.each([
    ["running", true],
    ["hibernated", true],
    ["destroyed", false],
    ["failed", false],
  ])("of a sandbox that is %s is %s", async (state, killed) => {
    const sandbox = await Sandbox.create(options());
    answer = () => ok(record({ state }));
    expect(await sandbox.kill()).toBe(killed);
    expect(await Sandbox.kill("sbx_1", options())).toBe(killed);
    expect(calls().at(-1)).toBe("DELETE /v1/rooms/a?drive=delete");
  });

  test("is false for a sandbox already killed by its object", async () => {
    const sandbox = await Sandbox.create(options());
    expect(await sandbox.kill()).toBe(true);
    answer = notFound;
    expect(await sandbox.kill()).toBe(false);
  });

  test("is false for a missing sandbox", async () => {
    answer = notFound;
    expect(await Sandbox.kill("sbx_1", options())).toBe(false);
  });
});

test("connect of an object resumes it, and sets its timeout", async () => {
  const sandbox = await Sandbox.create(options());
  answer = (request) => ok(record(isGet(request) ? { state: "hibernated" } : {}));
  expect(await sandbox.connect({ timeoutMs: 60_000 })).toBe(sandbox);
  expect(calls().slice(-3)).toEqual([
    "POST /v1/rooms/a/sandboxes/main/resume",
    "PATCH /v1/rooms/a/sandboxes/main",
    "PATCH /v1/rooms/a",
  ]);
});

test("pause accepts an id too", async () => {
  answer = ({ path }) => ok(record(path.endsWith("/hibernate") ? { state: "hibernated" } : {}));
  expect(await Sandbox.pause("sbx_1", options())).toBe(true);
});

describe("the limits of a call", () => {
  test("requestTimeoutMs ends the wait", async () => {
    const sandbox = await Sandbox.create(options());
    answer = () => null;
    const bound = { requestTimeoutMs: 20 };
    const late = [
      ...[sandbox.getInfo(bound), sandbox.isRunning(bound), sandbox.setTimeout(1, bound), sandbox.kill(bound)],
      ...[sandbox.files.read("/x", bound), sandbox.files.write("/x", "", { user: "root", ...bound })],
      ...[Sandbox.getInfo("sbx_1", { ...options(), ...bound }), Sandbox.list({ ...options(), ...bound }).nextItems()],
    ];
    for (const call of late) await expect(call).rejects.toBeInstanceOf(TimeoutError);
  });

  test("signal ends it with its reason", async () => {
    const sandbox = await Sandbox.create(options());
    const reason = new Error("enough");
    await expect(sandbox.getInfo({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(sandbox.files.list("/x", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

test("a sandbox whose home directory cannot be created is destroyed", async () => {
  answer = ({ path }) => (path.includes("/files/") ? problem(507, "disk_full", false) : ok(record()));
  await expect(Sandbox.create(options())).rejects.toMatchObject({ name: "NotEnoughSpaceError" });
  expect(calls().at(-1)).toBe("DELETE /v1/rooms/a?drive=delete");
});
