/** Processes that have to be in a certain scope before they start. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isAlive, type ProcessRecord, startEntering } from "../../../daemon/host/process.ts";

let scratch = "";

beforeEach(() => {
  scratch = mkdtempSync("/tmp/roomd-start-");
});
afterEach(() => rmSync(scratch, { recursive: true }));

test("a process starts once it is in its group, with its device, and keeps its pid", async () => {
  const output = join(scratch, "said");
  const device = join(scratch, "device");
  await Bun.write(device, "opened\n");
  const argv = ["sh", "-c", 'cat; read -r word <&3; echo "$$ $word $1" >"$0"', output, "a b;$(id)"];
  const seen: ProcessRecord[] = [];
  const enter = async (process: ProcessRecord) => {
    seen.push(process);
    await Bun.sleep(50);
    expect(existsSync(output)).toBe(false);
  };
  const process = await startEntering("probe", argv, join(scratch, "log"), enter, device);
  expect(await process.exited).toBe("exit 0");
  expect(seen).toMatchObject([{ pid: process.pid, start_ticks: process.start_ticks }]);
  // Its input is empty, whatever it waited for.
  expect(readFileSync(output, "utf8")).toBe(`${process.pid} opened a b;$(id)\n`);
  expect(readFileSync(join(scratch, "log"), "utf8")).toBe("");
});

test("a process without a group starts immediately", async () => {
  const output = join(scratch, "said");
  const process = await startEntering("probe", ["sh", "-c", 'echo "$$" >"$0"', output], join(scratch, "log"), null);
  await process.exited;
  expect(readFileSync(output, "utf8")).toBe(`${process.pid}\n`);
});

test("a process that cannot enter its group never starts, and is gone", async () => {
  const output = join(scratch, "said");
  const seen: ProcessRecord[] = [];
  const enter = async (process: ProcessRecord) => {
    seen.push(process);
    throw new Error("there is no room");
  };
  const starting = startEntering("probe", ["sh", "-c", 'echo >"$0"', output], join(scratch, "log"), enter);
  await expect(starting).rejects.toThrow("there is no room");
  expect(seen.map(isAlive)).toEqual([false]);
  expect(existsSync(output)).toBe(false);
});

test("a waiting process ends with its parent", async () => {
  const module = join(import.meta.dirname, "../../../daemon/host/process.ts");
  const script = `
    const { startEntering } = await import(${JSON.stringify(module)});
    const enter = (process) => { console.log(process.pid); return new Promise(() => {}); };
    setInterval(() => {}, 1000);
    await startEntering("probe", ["sleep", "60"], ${JSON.stringify(join(scratch, "log"))}, enter);`;
  const starter = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  let printed = "";
  for await (const piece of starter.stdout) {
    printed += Buffer.from(piece).toString();
    if (printed.includes("\n")) break;
  }
  const waiting = Number(printed);
  expect(existsSync(`/proc/${waiting}`)).toBe(true);
  starter.kill("SIGKILL");
  await starter.exited;
  for (let tries = 0; existsSync(`/proc/${waiting}`) && tries < 500; tries++) await Bun.sleep(10);
  expect(existsSync(`/proc/${waiting}`)).toBe(false);
});
