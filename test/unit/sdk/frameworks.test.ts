/** What the adapters for frameworks ask for, and what they make of a command's end. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sandboxSession } from "../../../sdk/typescript/src/ai-sdk.ts";
import { roomd as provider } from "../../../sdk/typescript/src/computesdk.ts";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { lines, ok, ScriptedService } from "./scripted-service.ts";

const HOUR_MS = 3_600_000;

let service: ScriptedService;
let end: object;
beforeEach(async () => {
  service = await ScriptedService.start(({ path }) =>
    path.includes("/stream") ? lines({ type: "exit", seq: 1, duration_ms: 1, ...end }) : ok({ sandbox_id: "sbx_1" }),
  );
});
afterEach(() => service.stop());

const session = () => sandboxSession(new Roomd({ url: service.url }).rooms.open("a").sandbox("w"));
const begun = async () => {
  const found = await provider({ url: service.url }).sandbox.getById("a");
  if (!found) throw new Error("It is not there.");
  return found;
};

describe("the exit code of a command", () => {
  test.each([
    ["that a signal has ended", { exit_code: null, signal: "SIGKILL", timed_out: false }, 137],
    ["that was out of time", { exit_code: null, signal: "SIGKILL", timed_out: true }, 124],
    ["that has ended by itself", { exit_code: 3, signal: null, timed_out: false }, 3],
  ])("%s is what a shell would say", async (_, ended, exitCode) => {
    end = ended;
    expect((await session().run({ command: "x" })).exitCode).toBe(exitCode);
    const spawned = await session().spawn({ command: "x" });
    expect((await spawned.wait()).exitCode).toBe(exitCode);
    expect((await (await begun()).runCommand("x")).exitCode).toBe(exitCode);
  });
});

describe("what runs in the background may run for an hour", () => {
  test("of the AI SDK", async () => {
    end = { exit_code: 0 };
    await (await session().spawn({ command: "x" })).wait();
    expect(service.bodies()[0]).toMatchObject({ timeout_ms: HOUR_MS });
  });

  test("of computesdk, unless it says otherwise", async () => {
    const sandbox = await begun();
    await sandbox.runCommand("x", { background: true });
    await sandbox.runCommand("x", { background: true, timeout: 1000 });
    expect(service.bodies().map(({ timeout_ms }) => timeout_ms)).toEqual([HOUR_MS, 1000]);
  });
});
