/** Parses the values of the command line. An invalid value is a usage error. */
import { InvalidArgumentError } from "commander";
import { DURATION_FORM, parseDuration } from "../../../shared/duration.ts";

/** Parser of an integer of at least `min`. */
export function integer(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < min)
      throw new InvalidArgumentError(`It must be a whole number of at least ${min}.`);
    return value;
  };
}

/** Parser of a size in MiB: 512, 512m or 1.5g, with or without "iB" or "B". */
export function mebibytes(min: number): (text: string) => number {
  return (text) => {
    const [, number, unit = "m"] = /^(\d{1,7}(?:\.\d{1,3})?)(?:([mg])(?:i?b)?)?$/i.exec(text) ?? [];
    const value = Number(number) * (unit.toLowerCase() === "g" ? 1024 : 1);
    if (!Number.isInteger(value) || value < min)
      throw new InvalidArgumentError(`It must be a size of at least ${min} MiB, such as 512 or 2g.`);
    return value;
  };
}

/** `count` whole numbers separated by commas, as for a screen position. */
export function numbers(count: number): (text: string) => number[] {
  return (text) => {
    const words = text.split(",");
    if (words.length !== count || !words.every((word) => /^\d{1,6}$/.test(word))) {
      throw new InvalidArgumentError(`It must be ${count} whole numbers with commas between.`);
    }
    return words.map(Number);
  };
}

/** Parser of a repeatable option: collects KEY=VALUE. */
export function pair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be KEY=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Parser of a repeatable option: collects words. */
export function word(text: string, before: string[] | false = []): string[] {
  return [...(before || []), text];
}

/** A time such as 500ms, 90s, 15m, 24h or 7d; a bare number is seconds. */
export function milliseconds(text: string): number {
  const ms = parseDuration(text);
  if (ms === null) throw new InvalidArgumentError(DURATION_FORM);
  return ms;
}

export function seconds(text: string): number {
  const ms = milliseconds(text);
  if (ms < 1000 || ms % 1000 !== 0) throw new InvalidArgumentError("It must be whole seconds.");
  return ms / 1000;
}

export function secondsOrZero(text: string): number {
  return milliseconds(text) === 0 ? 0 : seconds(text);
}

/** Seconds, or `none` to remove the setting; commander turns null into "". */
export function secondsOrNone(text: string): number | "none" {
  return text === "none" ? text : seconds(text);
}

/** A time in a form that the API accepts. */
export function moment(text: string): string {
  if (!/^\d{1,12}(?:\.\d+)?$/.test(text) && !(FULL_TIME.test(text) && !Number.isNaN(Date.parse(text))))
    throw new InvalidArgumentError("It must be a time with its zone such as 2026-01-31T12:00:00Z, or unix seconds.");
  return text;
}

const FULL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;

/** Parser of comma-separated words of a closed set; returns the text unchanged. */
export function words(known: readonly string[]): (text: string) => string {
  return (text) => {
    const invalid = text.split(",").find((each) => !known.includes(each));
    if (invalid !== undefined)
      throw new InvalidArgumentError(`${invalid || "Nothing"} is not one of ${known.join(", ")}.`);
    return text;
  };
}

/** Parser of KEY=VALUE; returns the API's filter form KEY:VALUE. */
export function labelFilter(text: string): string {
  const [, key, value] = /^([^=:]+)[=:](.*)$/s.exec(text) ?? [];
  if (key === undefined) throw new InvalidArgumentError("It must be KEY=VALUE.");
  return `${key}:${value}`;
}

/** A path on a room's drive. */
export interface DrivePath {
  room_id: string;
  path: string;
}

/** ROOM:/path; room names contain no colon, so the first one separates. */
export function place(text: string): DrivePath {
  const at = text.indexOf(":");
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError("It must be ROOM:/path.");
  return { room_id: text.slice(0, at), path: text.slice(at + 1) };
}

/** A path in a sandbox. */
export interface SandboxPlace {
  room_id: string;
  sandbox: string;
  path: string;
}

/** ROOM/AGENT:/path */
export function sandboxPlace(text: string): SandboxPlace {
  const [, room_id, sandbox, path] = /^([^:/]+)\/([^:/]+):(\/.*)$/s.exec(text) ?? [];
  if (room_id === undefined || sandbox === undefined || path === undefined)
    throw new InvalidArgumentError("It must be ROOM/AGENT:/path.");
  return { room_id, sandbox, path };
}

/** Target of `roomd ls` and `roomd rm`: a room, an agent in it, a path on the room's drive or on the agent's own disk. */
export interface Target {
  room_id: string;
  agent: string | null;
  path: string | null;
}

/** ROOM[/AGENT][:PATH]; neither name contains a colon or a slash. */
export function target(text: string): Target {
  const [, room_id, agent = null, path = null] = /^([^:/]+)(?:\/([^:/]+))?(?::(.+))?$/s.exec(text) ?? [];
  if (room_id === undefined)
    throw new InvalidArgumentError("It must be ROOM, ROOM/AGENT, ROOM:/path or ROOM/AGENT:/path.");
  return { room_id, agent, path };
}

/** ROOM for its whole drive, or ROOM:/path. */
export function placeOrRoom(text: string): DrivePath {
  return text.includes(":") ? place(text) : { room_id: text, path: "/" };
}
