/** `roomd serve`: the daemon in the foreground, from its configuration to its graceful end. */
import { existsSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import type { Command } from "commander";
import type { Paths } from "../../core/config/paths.ts";
import { DISK_FAILED_STATUS, DiskFailure } from "../../core/disk-failure.ts";
import { type Log, makeLog } from "../../core/log.ts";
import { describeError, errnoOf, ServiceError } from "../../core/service-error.ts";
import { planListen } from "../../edge/http/tls.ts";
import { LocalhostTaken } from "../../edge/listener.ts";
import { planSsh } from "../../edge/ssh/plan.ts";
import { exitAsIs } from "../../host/exit-as-is.ts";
import { leaveExit } from "../../host/last-exit.ts";
import { findServiceManager } from "../../host/service-manager.ts";
import { isHostStopping } from "../../host/system-service.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { type JsonOption, print } from "../kit/output.ts";
import { becomeConfigured, requireCleanEnvironment } from "./environment.ts";
import { type ConfigOption, readConfiguration, withConfigOption } from "./operator.ts";
import { forgetDatabase } from "./upgrade-database.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
/** Switches the log to debug level, and back to the configured level at the next signal. SIGUSR1 is the runtime's own. */
const LOG_SIGNAL = "SIGUSR2";

export function serveCommand(): Command {
  const about = {
    summary: "run the service in the foreground",
    notes: [
      "When it is ready, it prints one line with its URL on standard output. The log goes to standard error.",
      "SIGTERM and SIGINT end it gracefully, a second one immediately. Guests keep running and are adopted by the next daemon.",
      "If systemd shuts the host down they are saved to disk instead (hibernate.on_shutdown), and resumed by the next daemon.",
      "SIGUSR2 switches log.level to debug, and back.",
      "Daemons with different data_dir, runtime_dir, http.listen and ssh.listen run side by side.",
      "It refuses to start with BUN_OPTIONS, BUN_INSPECT or BUN_BE_BUN set, which would run other code in it.",
    ],
    examples: [
      "roomd serve",
      "roomd serve --config /etc/roomd/config.toml",
      "ROOMD_HTTP_LISTEN=127.0.0.1:9080 ROOMD_SSH_LISTEN=127.0.0.1:9022 ROOMD_DATA_DIR=/srv/second ROOMD_RUNTIME_DIR=/run/second roomd serve",
    ],
  };
  return withConfigOption(command("serve", about)).action(async (options: JsonOption & ConfigOption) => {
    requireCleanEnvironment();
    becomeConfigured();
    const { config, paths } = readConfiguration(options);
    planSsh(config);
    planListen(config); // reports a wrong address or TLS setting before anything is opened
    const ended = firstSignal();
    // Left over from a daemon that ended before it read the file.
    rmSync(paths.hibernate_all, { force: true });
    const { startDaemon } = await import("../../compose/compose.ts");
    const threshold = { level: config["log.level"] };
    const log = makeLog(threshold);
    process.on(LOG_SIGNAL, () => {
      threshold.level = threshold.level === "debug" ? config["log.level"] : "debug";
      log.warn("log level changed by a signal", { level: threshold.level });
    });
    outsideOfCalls(log, paths);
    const manager = findServiceManager();
    const { extend: extendStart } = manager;
    const daemon = await startDaemon({ config, paths, log, extendStart }).catch((error) => {
      if (error instanceof Error && !(error instanceof ServiceError)) log.debug("not started", { stack: error.stack });
      if (error instanceof DiskFailure) {
        markDiskFailure(paths);
        throw new CliError(`${describeError(error)}.`, DISK_FAILED_STATUS);
      }
      if (errnoOf(error) !== "EADDRINUSE") throw error;
      const key = (error as { port?: unknown }).port === planSsh(config)?.port ? "ssh.listen" : "http.listen";
      if (error instanceof LocalhostTaken) {
        throw new CliError(
          `http.listen = ${config["http.listen"]}: ${error.message}, to which browsers resolve localhost first: stop it or choose another port.`,
        );
      }
      throw new CliError(`${key} = ${config[key]} is in use by another program: stop it or choose another.`);
    });
    const isReady = await Promise.race([daemon.ready.then(() => true), ended.then(() => false)]);
    // Calls accepted from now on are in this database alone: no interrupted upgrade may roll it back.
    if (isReady) forgetDatabase(paths);
    manager.ready();
    await print(options.json ? JSON.stringify({ url: daemon.url, ssh: daemon.ssh }) : readyLine(daemon));
    await ended;
    manager.stopping();
    const hibernate = isTold(paths) || (config["hibernate.on_shutdown"] && (await isHostGoing(log)));
    const done = hibernate ? manager.takesLonger() : () => {};
    await daemon.stop({ hibernate });
    done();
  });
}

/** Whether `roomd hibernate` has requested it. */
function isTold({ hibernate_all }: Paths): boolean {
  const isRequested = existsSync(hibernate_all);
  rmSync(hibernate_all, { force: true });
  return isRequested;
}

async function isHostGoing(log: Log): Promise<boolean> {
  try {
    return await isHostStopping();
  } catch (error) {
    log.error("failed to determine whether the host is shutting down: sandboxes are not saved", {
      error: describeError(error),
    });
    return false;
  }
}

/**
 * Handlers of uncaught errors. An unhandled rejection concerns one request or one guest, and the service continues. An exception thrown in
 * the middle of a handler leaves unknown state half changed: the service ends, and systemd restarts it; guests outlive it.
 */
function outsideOfCalls(log: Log, paths: Paths): void {
  process.on("unhandledRejection", (error) => log.error("unhandled rejection", { error: describeError(error) }));
  process.on("uncaughtException", (error) => {
    // Written synchronously, since nothing is written after the exit.
    const dying = makeLog("error", (line) => writeSync(process.stderr.fd, line));
    if (error instanceof DiskFailure) {
      dying.error("the disk has failed: the service ends", { error: describeError(error) });
      markDiskFailure(paths);
      exitAsIs(DISK_FAILED_STATUS);
    }
    dying.error("uncaught exception: the service ends", { error: describeError(error), stack: error.stack });
    leaveExit(paths.last_end, "exception");
    process.exit(EXIT.roomd);
  });
}

/** Marks a disk failure: the next start writes the whole log into the database, or refuses to start. */
function markDiskFailure({ disk_failed }: Paths): void {
  try {
    writeFileSync(disk_failed, "", { mode: 0o600 });
  } catch {
    // runtime_dir is full. Without the file, the next start writes the log again unless another process has the database open.
  }
}

function readyLine({ url, ssh }: { url: string; ssh: string | null }): string {
  return ssh === null ? `roomd is ready at ${url}` : `roomd is ready at ${url} and for ssh at ${ssh}`;
}

/** Resolves at the first termination signal; a second one ends the process immediately. */
function firstSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const seen: string[] = [];
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (seen.push(signal) > 1) process.exit(EXIT.signal + constants.signals[signal]);
      resolve();
    });
  }
  return promise;
}
