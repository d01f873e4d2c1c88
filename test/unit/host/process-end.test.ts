/** Hearing of the end of processes that are not our children. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isAlive, processOf } from "../../../daemon/host/process.ts";
import { endOf } from "../../../daemon/host/process-end.ts";

/** An orphan process, as a guest's are when their daemon has ended. */
async function orphan() {
  const parent = Bun.spawn(["/bin/sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $!"], { stdout: "pipe" });
  const pid = Number(await new Response(parent.stdout).text());
  await parent.exited;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return { pid, start_ticks: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "" };
}

test("the exit of another process' child is reported, and not before it occurs", async () => {
  const [first, second] = [await orphan(), await orphan()];
  const ended: string[] = [];
  const ends = [endOf(first).then(() => ended.push("first")), endOf(second).then(() => ended.push("second"))];
  expect(isAlive(first)).toBe(true);
  process.kill(second.pid, "SIGKILL");
  await ends[1];
  expect(isAlive(second)).toBe(false);
  expect(ended).toEqual(["second"]);
  process.kill(first.pid, "SIGKILL");
  await ends[0];
  expect(ended).toEqual(["second", "first"]);
});

test("a process that exited before, or whose pid has been reused, has ended", async () => {
  const ended = await orphan();
  process.kill(ended.pid, "SIGKILL");
  await endOf(ended);
  await endOf(ended);
  await endOf({ pid: process.pid, start_ticks: "1" });
  expect(isAlive(ended)).toBe(false);
});

const HALF_ENDED = `
import ctypes, threading, time
threading.Thread(target=lambda: time.sleep(60)).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)`;

test("a process whose main thread has exited is alive as long as another thread is", async ({ skip }) => {
  skip(!Bun.which("python3"), "there is no python3");
  const child = Bun.spawn(["python3", "-c", HALF_ENDED], { stdout: "pipe" });
  const half = processOf(child.pid);
  const stateOf = (pid: number) => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  for (let tries = 0; stateOf(child.pid) !== "Z" && tries < 500; tries++) await Bun.sleep(10);
  expect(stateOf(child.pid)).toBe("Z");
  expect(half && isAlive(half)).toBe(true);
  child.kill("SIGKILL");
  await child.exited;
  expect(half && isAlive(half)).toBe(false);
});
