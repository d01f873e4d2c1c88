/**
 * The guest agent: process 1 of a sandbox. This file has the order of its life; each part is in the file of its name.
 *
 *     boot ─▶ warm up ─▶ (template: start the recipe's programs; the host saves the guest here) ─▶ dial the host, serve, redial
 *                                                                       └─ requested on the console: warm up once more
 */
import { readFileSync } from "node:fs";
import {
  STEPS_FLAG,
  TEMPLATE_FAILED_LINE,
  TEMPLATE_FLAG,
  TEMPLATE_READY_LINE,
} from "../shared/agent-protocol/messages.ts";
import { FILM_COMMAND } from "../shared/agent-protocol/recording.ts";
import { AfterRestore } from "./after-restore.ts";
import { boot } from "./boot.ts";
import { DiskFreeze } from "./disk-freeze.ts";
import { Drive } from "./drive/drive.ts";
import { Egress } from "./egress/egress.ts";
import { Cgroup } from "./exec/cgroup.ts";
import { Executions } from "./exec/executions.ts";
import { Journal } from "./exec/kept-output.ts";
import { runFilm } from "./film/film.ts";
import { Gateway } from "./gateway/gateway.ts";
import { HostAuth } from "./host-auth.ts";
import { HostConnection } from "./host-connection.ts";
import { syncRoot } from "./libc.ts";
import { keepLinked } from "./link.ts";
import { announce, log } from "./log.ts";
import { PoolWarmUp } from "./pool-warm-up.ts";
import { Reaper } from "./reap.ts";
import { ROOM_COMMAND, runRoom } from "./room/room.ts";
import { makeRouter } from "./router.ts";
import { Setup } from "./setup.ts";
import { NOTHING_TO_START, Start, StartFailed } from "./start.ts";
import { Terminals } from "./terminal/terminals.ts";
import { trimMemory } from "./trim-memory.ts";
import { touchDrive, touchUp, warmUp } from "./warm-up.ts";

/** A template is warmed up once for all its clones; a guest that boots without a template has to be fast. */
const WARM_UP_ROUNDS = { template: 50, again: 2, alone: 1 } as const;

const SPURNED_SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM"] as const;

if (process.argv[2] === ROOM_COMMAND) process.exit(await runRoom(process.argv.slice(3)));
if (process.argv[2] === FILM_COMMAND) {
  await runFilm(process.argv.slice(3));
  process.exit(0);
}

// The exit of process 1 ends the guest, so an uncaught error is only logged.
process.on("uncaughtException", (error) => log("uncaught", error));
process.on("unhandledRejection", (error) => log("unhandled", error));
// The kernel drops signals for which process 1 has no handler; Bun installs handlers, which would end it.
for (const signal of SPURNED_SIGNALS) process.on(signal, () => log(`${signal} ignored`));

boot();
const flags = readFileSync("/proc/cmdline", "utf8").split(/\s+/);
const isTemplate = flags.includes(TEMPLATE_FLAG);
const reaper = new Reaper();
reaper.start();
const drive = new Drive(reaper);
const line = new HostConnection();
const egress = new Egress(reaper, line);
const made = egress.make();
const gateway = new Gateway(line);
gateway.listen();
const takeCgroup = Cgroup.take;
const start = new Start(reaper, { takeCgroup });
const hooks = new AfterRestore(reaper);
const setup = new Setup(drive, egress, gateway, flags.includes(STEPS_FLAG) ? NOTHING_TO_START : start, hooks);
const env = () => setup.env;
const executions = new Executions({ reaper, drive, env, takeCgroup, makeJournal: () => new Journal() });
const terminals = new Terminals({ reaper, drive, env, takeCgroup });
const router = makeRouter(executions, terminals, drive, new DiskFreeze(reaper));

const forgetAll = () => {
  executions.forgetAll();
  terminals.forgetAll();
};
const cast = { router, line };
const warm = async (rounds: number, network: boolean) => {
  await warmUp(cast, rounds, network).catch((error) => log("warm-up", error));
  forgetAll();
};
if (isTemplate) await warm(WARM_UP_ROUNDS.template, await made);
else await warm(WARM_UP_ROUNDS.alone, false);
const useDrive = () => touchDrive().catch((error) => log("rehearsal", error));
const rehearsal = new PoolWarmUp(() => touchUp(cast).finally(forgetAll), useDrive);
if (isTemplate) {
  const atRest = start.bringUp().then(() => start.rest());
  await atRest.then(
    async () => {
      const touch = async () => warm(WARM_UP_ROUNDS.again, await made);
      await trimMemory(touch).catch((error) => log("small memory", error));
      rehearsal.listen();
      syncRoot();
      announce(TEMPLATE_READY_LINE);
    },
    (error) => {
      const lines = error instanceof StartFailed ? error.lastLines : [];
      announce([`${TEMPLATE_FAILED_LINE}${error.message}`, ...lines.filter((line) => line !== ""), ""].join("\n"));
    },
  );
}
await keepLinked({ trust: new HostAuth(), setup, router, line }, rehearsal);
