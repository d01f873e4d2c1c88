/**
 * The user's SSH files: `roomd.config` with the entries of sandboxes, `roomd.known_hosts` with the gateways' keys, and one line in `config`
 * that includes `roomd.config`. The rest of `config` is not changed.
 */
import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { errnoOf } from "../../../../core/service-error.ts";
import { CliError } from "../../../kit/cli-error.ts";
import { type EntryFiles, entryLines, type Gateway, hostOf, knownHostsLine, type SshTarget } from "./host-entry.ts";

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const HEAD = "# Written by `roomd ssh-config --install`; `roomd ssh-config --remove` takes it away.";

export interface SshFiles extends EntryFiles {
  /** The user's own configuration. */
  config: string;
  /** The file of this program. */
  entries: string;
}

export function sshFiles(env: Record<string, string | undefined> = process.env, platform = process.platform): SshFiles {
  const directory = join(env.HOME || homedir(), ".ssh");
  return {
    config: join(directory, "config"),
    entries: join(directory, "roomd.config"),
    knownHosts: join(directory, "roomd.known_hosts"),
    controlPath: platform === "win32" ? null : join(directory, "roomd"),
  };
}

/** Adds the targets' entries, or replaces existing entries of the same hosts. */
export function installEntries(targets: readonly SshTarget[], gateway: Gateway, files = sshFiles()): void {
  mkdirSync(join(files.config, ".."), { recursive: true, mode: DIRECTORY_MODE });
  const entries = entriesIn(read(files.entries));
  for (const target of targets) entries.set(hostOf(target), entryLines(target, gateway, files));
  writeEntries(entries, files);
  const known = linesOf(read(files.knownHosts)).filter((line) => !line.startsWith(`${gateway.alias} `));
  replace(files.knownHosts, [...known, knownHostsLine(gateway)]);
  include(files);
}

/**
 * Removes the entries with a matching user (AGENT@ROOM); if none remain, also the files and the Include line. Returns the removed hosts.
 */
export function removeEntries(isRemoved: (user: string) => boolean, files = sshFiles()): string[] {
  const entries = entriesIn(read(files.entries));
  const removed = [...entries.keys()].filter((host) => isRemoved(userOf(entries.get(host) ?? [])));
  for (const host of removed) entries.delete(host);
  if (entries.size > 0) {
    writeEntries(entries, files);
    return removed;
  }
  for (const file of [files.entries, files.knownHosts]) rmSync(file, { force: true });
  const before = read(files.config);
  const line = includeLine(files);
  if (before !== null && linesOf(before).includes(line)) {
    replace(
      files.config,
      before.split("\n").filter((each) => each.trim() !== line),
      "",
    );
  }
  return removed;
}

/** The line is the first: after a `Host` it would be part of that entry. */
function include(files: SshFiles): void {
  const before = read(files.config);
  const line = includeLine(files);
  if (before !== null && linesOf(before).includes(line)) return;
  replace(files.config, [line, ...(before === null ? [""] : [before])], "");
}

function includeLine({ entries }: SshFiles): string {
  return `Include "${entries.replaceAll("\\", "/")}"`;
}

function writeEntries(entries: Map<string, string[]>, { entries: file }: SshFiles): void {
  replace(file, [HEAD, ...[...entries.values()].flatMap((lines) => ["", ...lines])]);
}

/** Entries of the file, by host. */
function entriesIn(text: string | null): Map<string, string[]> {
  const found = new Map<string, string[]>();
  let current: string[] | null = null;
  for (const line of text?.split("\n") ?? []) {
    const host = /^Host (\S+)$/.exec(line)?.[1];
    if (host !== undefined) {
      current = [line];
      found.set(host, current);
    } else if (/^\s+\S/.test(line)) current?.push(line);
  }
  return found;
}

function userOf(lines: readonly string[]): string {
  return lines.find((line) => line.startsWith("  User "))?.slice("  User ".length) ?? "";
}

function linesOf(text: string | null): string[] {
  return (text ?? "").split("\n").flatMap((line) => line.trim() || []);
}

/** Content of the file; null if it does not exist. Throws CliError if it cannot be read. */
function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw new CliError(`${file} cannot be read (${errnoOf(error) ?? String(error)}).`);
  }
}

/** Replaces a file atomically and keeps its permissions; for a symbolic link, replaces the link's target. */
function replace(file: string, lines: readonly string[], end = "\n"): void {
  try {
    const place = statSync(file, { throwIfNoEntry: false }) ? realpathSync(file) : file;
    const mode = (statSync(place, { throwIfNoEntry: false })?.mode ?? FILE_MODE) & 0o777;
    const next = `${place}.${process.pid}`;
    writeFileSync(next, lines.join("\n") + end, { mode: FILE_MODE });
    chmodSync(next, mode);
    renameSync(next, place);
  } catch (error) {
    throw new CliError(`${file} cannot be written (${errnoOf(error) ?? String(error)}).`);
  }
}
