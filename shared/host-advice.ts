/** Advice about a host in a cluster, as sentences and `roomd` command lines: the same text for pages and terminals. */
import type { Static } from "@sinclair/typebox";
import type { host } from "./api/hosts.ts";

export type ListedHost = Static<typeof host>;

export interface Advice {
  text: string;
  /** The command lines, without the leading `roomd`. */
  lines: readonly (readonly string[])[];
  /** Where to run them: on the host itself, or on any. */
  where: "there" | "anywhere";
}

/** After this time, the state of other hosts is unknown. */
export const DIRECTORY_STALE_SECONDS = 20;

/** Advice about a host, the most urgent first. `all` are the hosts of the service. */
export function adviceFor(host: ListedHost, all: readonly ListedHost[]): Advice[] {
  const { state, capacity } = host;
  if (state === "gone") return [];
  if (state === "unreachable") return [ofSilent(host)];
  if (capacity === null)
    return [{ text: "It has joined but was never started: start the service on it.", lines: [], where: "there" }];
  return [
    ...(state === "degraded" ? [DEGRADED] : []),
    ...(state === "draining" ? [ofDraining(host, capacity.rooms)] : []),
    ...(capacity.templates.length === 0 ? [NO_TEMPLATE] : []),
    ...(isOlderThanOthers(host, all) ? [ofOlder(host)] : []),
  ];
}

function ofSilent({ host }: ListedHost): Advice {
  return {
    text: "Its rooms are unreachable, and their names stay taken. Start it, or repair its connection to the database: the rooms then continue unchanged. Only if it is permanently lost, give the rooms up; their contents are lost then:",
    lines: [["cluster", "remove", host, "--force"]],
    where: "anywhere",
  };
}

const DEGRADED: Advice = {
  text: "Its last sandboxes did not start, so no rooms are placed on it. Show the reason on that host:",
  lines: [["doctor"]],
  where: "there",
};

const NO_TEMPLATE: Advice = {
  text: "It has no template, so no sandbox starts there. Build one on it:",
  lines: [["template", "build", "default"]],
  where: "there",
};

function ofDraining({ host }: ListedHost, rooms: number): Advice {
  const undo = ["cluster", "drain", host, "--undo"];
  if (rooms === 0)
    return {
      text: "It is empty. Take it out, or place rooms on it again:",
      lines: [["cluster", "remove", host], undo],
      where: "anywhere",
    };
  const have = rooms === 1 ? "its room has" : `its ${rooms} rooms have`;
  return {
    text: `No rooms are placed on it. Wait until ${have} ended, move them now, or place rooms on it again:`,
    lines: [["cluster", "evacuate", host], undo],
    where: "anywhere",
  };
}

function ofOlder({ host, version }: ListedHost): Advice {
  return {
    text: `It runs ${version}, and others a newer version. Empty it, upgrade it, then place rooms on it again:`,
    lines: [
      ["cluster", "evacuate", host],
      ["cluster", "drain", host, "--undo"],
    ],
    where: "anywhere",
  };
}

/** Whether another running host has a newer version. */
export function isOlderThanOthers({ version }: ListedHost, all: readonly ListedHost[]): boolean {
  return all.some(
    (other) => other.state !== "gone" && other.state !== "unreachable" && isOlder(version, other.version),
  );
}

/** Compares versions number by number, from the left. */
function isOlder(version: string | null, than: string | null): boolean {
  if (version === null || than === null) return false;
  const [own, other] = [numbersOf(version), numbersOf(than)];
  const at = own.findIndex((part, n) => part !== (other[n] ?? 0));
  return at !== -1 && (own[at] ?? 0) < (other[at] ?? 0);
}

const numbersOf = (version: string): number[] => {
  const [major = 0, minor = 0, patch = 0] = (/^\d+(?:\.\d+)*/.exec(version)?.[0] ?? "").split(".").map(Number);
  return [major, minor, patch];
};
