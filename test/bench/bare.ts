/** Process of bare-server.ts, a yardstick. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Answers everything with this body, which is JSON. */
export async function startBare(body: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "load/bare-server.ts"), body], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the bare server ended with ${code}`)));
  });
  return {
    url,
    pid: child.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await exited;
    },
  };
}
