/** `roomd backup`: to a file or a pipe (backup-archive.ts), or to an object store (domain/backups). `roomd restore` is in restore.ts. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Command, Option } from "commander";
import { syncDirectory } from "../../core/config/durable-file.ts";
import { errnoOf } from "../../core/service-error.ts";
import { urlOf } from "../../domain/backups/index.ts";
import type { Missed } from "../../host/archive.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { bytesText, counted, type JsonOption, printable, say, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { backUp, copyService, oneAtATime, requireService } from "./backup-archive.ts";
import { backupToStore, listBackups, type Recording, requirePlan } from "./backup-store.ts";
import { type ConfigOption, ownConfiguration, withConfigOption, withOperator } from "./operator.ts";

/** Given instead of a file: list the backups in the object store. */
const LIST = "list";
export const STANDARD_STREAM = "-";
const OUTPUT = 1;

/** Lines about guests' paths that are not in the backup. */
export function missedLines({ count, first }: Missed, reason: string): string[] {
  if (count === 0) return [];
  const more = count > first.length ? [`  and ${count - first.length} more`] : [];
  return [`${counted(count, "path")} of guests ${reason}:`, ...first.map((line) => `  ${printable(line)}`), ...more];
}

export function backupCommand(): Command {
  const about = {
    summary: "write everything that must survive into one archive while the service runs (run on the host)",
    notes: [
      "It holds the database with keys and audit, every drive, and the service's secrets. Protect it as you protect",
      "the keys. Templates (built again) and sandboxes (useless without their memory) are not in it. Drives are read",
      "while guests may write to them. If that matters, run `roomd sandbox standby` first.",
      "`list` in place of a file lists the backups in the object store, of all hosts that use it, newest first.",
      "Each backup is recorded: `roomd audit --host --event backup.`",
    ],
    examples: [
      "roomd backup /var/backups/roomd.tar",
      "roomd backup - | ssh backup.example.org 'cat >roomd.tar'",
      "roomd backup --to s3",
      "roomd backup list",
    ],
  };
  return withConfigOption(command("backup [file]", about))
    .addOption(
      new Option("--to <store>", "send it, encrypted, to the object store of the configuration").choices(["s3"]),
    )
    .action(async (file: string | undefined, options: JsonOption & ConfigOption & { to?: "s3" }) => {
      if ((file === undefined) === (options.to === undefined))
        throw new CliError("Name the file for the backup, or give --to s3.", EXIT.usage);
      if (file === LIST) return await listBackups(options);
      await (file === undefined ? sendToStore(options) : writeToFile(file, options));
    });
}

async function sendToStore(options: JsonOption & ConfigOption): Promise<void> {
  const { config, paths } = ownConfiguration(options);
  const plan = requirePlan(config);
  const record: Recording = (event, details) => withOperator(options, (operator) => operator.record(event, details));
  const { missed, changed, days_missing, ...made } = await withProgress("copying the database", (progress) =>
    backupToStore({ config, paths, record, plan, onStage: (stage) => progress.say(stage) }),
  );
  await tellOfGuests(changed, missed);
  await tellOfDays(days_missing);
  const { name, size_bytes, bytes, deleted, undeleted, is_read_back } = made;
  const url = urlOf(plan, name);
  await showValue({ url, ...made, days_missing, missed }, options, () => [
    `wrote ${url}, ${bytesText(size_bytes)} (${bytesText(bytes)} before it was encrypted)`,
    ...(is_read_back ? ["read it back: it is whole"] : []),
    ...(deleted.length > 0 ? [`deleted ${counted(deleted.length, "older backup")}`] : []),
    ...(undeleted === null ? [] : [`older backups could not be deleted: ${printable(undeleted)}`]),
  ]);
}

async function writeToFile(file: string, options: JsonOption & ConfigOption): Promise<void> {
  const { config, paths } = ownConfiguration(options);
  // Recorded before the copy, so that the backup contains the record too.
  requireService(paths);
  await withOperator(options, (operator) => operator.record("backup.begun", { file }));
  const { changed, missed, size_bytes, ...facts } = await withProgress("copying the database", (progress) =>
    oneAtATime(paths, () =>
      writeTo(file, async (to) => {
        const copied = await copyService(paths, config);
        progress.say("archiving drives");
        return await backUp(paths, to, copied, { withDays: true });
      }),
    ),
  );
  await tellOfGuests(changed, missed);
  await tellOfDays(facts.days_missing);
  if (file === STANDARD_STREAM) return;
  const made = { file: resolve(file), size_bytes, ...facts, missed };
  await showValue(made, options, () => [`wrote ${file}, ${bytesText(size_bytes)}`]);
}

async function tellOfGuests(changed: boolean, missed: Missed): Promise<void> {
  if (changed)
    await say("roomd: files of drives changed while they were read; the backup has each as it was at that moment");
  const lines = missedLines(missed, "could not be read and are not in the backup");
  if (lines.length > 0) await say(...lines.map((line) => `roomd: ${line}`));
}

async function tellOfDays(missing: readonly string[]): Promise<void> {
  if (missing.length === 0) return;
  await say(`roomd: closed days of the audit are missing or damaged, and not in the backup: ${missing.join(", ")}`);
}

/** Writes to a `.part` file and renames it once it is complete and synced. */
async function writeTo<T>(file: string, work: (to: number) => Promise<T>): Promise<T & { size_bytes: number }> {
  if (file === STANDARD_STREAM) {
    if (process.stdout.isTTY) throw new CliError("A backup is binary: send it to a file or a pipe.", EXIT.usage);
    return { ...(await work(OUTPUT)), size_bytes: 0 };
  }
  if (existsSync(file)) throw new CliError(`${file} already exists. Choose another name, or remove it.`);
  const draft = `${file}.part`;
  let to: number;
  try {
    rmSync(draft, { force: true });
    to = openSync(draft, "wx", 0o600);
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${errnoOf(error) ?? String(error)}.`);
  }
  try {
    const done = await work(to);
    fsyncSync(to);
    renameSync(draft, file);
    syncDirectory(dirname(resolve(file)));
    return { ...done, size_bytes: Bun.file(file).size };
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(to);
  }
}
