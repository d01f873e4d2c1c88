import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FAULT_POINTS, FAULT_STEPS, FAULT_VARIABLE, readFault } from "../../../daemon/core/fault-points.ts";
import { allSteps } from "../../../daemon/host/guest/steps.ts";
import { codeOf } from "../../house/sources.ts";

const RUNNER = fileURLToPath(new URL("fault-runner.ts", import.meta.url));

/** Runs the runner with a fault, and resumes it when it reports that it has reached the fault. */
async function run(fault: string) {
  const child = spawn(process.execPath, [RUNNER], { env: { ...process.env, [FAULT_VARIABLE]: fault } });
  const output = { out: "", err: "" };
  child.stdout.on("data", (bytes) => {
    output.out += bytes;
  });
  child.stderr.on("data", (bytes) => {
    output.err += bytes;
    if (String(output.err).includes('"stall"}\n')) child.kill("SIGUSR2");
  });
  const how = await new Promise<unknown[]>((resolve) => child.once("close", (...how) => resolve(how)));
  return { how, done: output.out.trim().split("\n"), errors: output.err };
}

const ALL = ["disk", "machine", "commit 1", "commit 2", "commit 3", "end"];

describe("fault points", () => {
  it("do nothing unless one is configured", async () => {
    expect(await run("")).toEqual({ how: [0, null], done: ALL, errors: "" });
  });

  it("kill the process at the point and log it", async () => {
    expect(await run("run.machine.before=kill")).toEqual({
      how: [null, "SIGKILL"],
      done: ["disk"],
      errors: '{"fault_point":"run.machine.before","does":"kill"}\n',
    });
  });

  it("kill it at the given pass", async () => {
    expect((await run("commit.written=kill@3")).done).toEqual(["disk", "machine", "commit 1", "commit 2"]);
  });

  it("stall until they are released", async () => {
    const { how, done, errors } = await run("run.disk.after=stall");
    expect([how, done]).toEqual([[0, null], ALL]);
    expect(errors).toContain("run.disk.after");
  });

  it("reject an invalid name, and a stall at a point that cannot wait", async () => {
    for (const wrong of [
      "run.nothing.before=kill",
      "place.synced=explode",
      "place.synced=kill@0",
      "commit.after=stall",
    ]) {
      expect(() => readFault(wrong)).toThrow(wrong);
    }
    expect((await run("nowhere=kill")).how).not.toEqual([0, null]);
  });

  it("cover the existing steps, and every other name occurs in the code", () => {
    const steps = [...new Set((["snapshot", "cold", "saved"] as const).flatMap(allSteps).map(({ name }) => name))];
    expect([...FAULT_STEPS].sort()).toEqual(steps.sort());
    const used = codeOf("daemon").flatMap(({ text }) =>
      [...text.matchAll(/faultPoint\("([\w.]+)"\)/g)].map((match) => String(match[1])),
    );
    expect(used.length).toBeGreaterThan(10);
    for (const name of used) expect(readFault(`${name}=kill`)).toMatchObject({ point: name });
    const named = FAULT_POINTS.filter((name) => !/^(run|undo)\./.test(name));
    expect(used.toSorted()).toEqual(named.toSorted());
  });
});
