/**
 * The guest agent: process 1 of a sandbox. Owns the order of its life; each part is in the file of its name.
 *
 *   boot ─▶ warm up ─▶ (template: at rest, the host saves the guest here) ─▶ dial the host, serve, dial again
 */
import { readFileSync, writeFileSync } from "node:fs";
import { TEMPLATE_FLAG, TEMPLATE_READY_LINE } from "../shared/agent-protocol/messages.ts";
import { boot } from "./boot.ts";
import { Exec } from "./exec/run.ts";
import { sync } from "./libc.ts";
import { keepLinked } from "./link.ts";
import { Reaper } from "./reap.ts";
import { makeRouter } from "./router.ts";
import { Setup } from "./setup.ts";
import { warmUp } from "./warm-up.ts";

// The end of process 1 is the end of the guest: one command's trouble must not be everyone's.
process.on("uncaughtException", (error) => console.error("roomd-agent: uncaught:", error));
process.on("unhandledRejection", (error) => console.error("roomd-agent: unhandled:", error));

boot();
const reaper = new Reaper();
reaper.start();
const setup = new Setup();
const router = makeRouter(new Exec({ reaper, env: () => setup.env }));

await warmUp(router).catch((error) => console.error("roomd-agent: warm-up:", error));
if (readFileSync("/proc/cmdline", "utf8").split(/\s+/).includes(TEMPLATE_FLAG)) {
  writeFileSync("/etc/machine-id", "");
  sync();
  writeFileSync("/dev/console", `\n${TEMPLATE_READY_LINE}\n`);
}
await keepLinked(setup, router);
