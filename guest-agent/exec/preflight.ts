/** Checks a command's working directory and program without hanging on a dead drive. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Drive } from "../drive/drive.ts";
import { IMAGE } from "../image-defaults.ts";
import type { User } from "./user.ts";

/** Whether `cwd` and the directories in which `name` is searched can be read: those on the drive need a responsive drive. */
export async function canLook(drive: Drive, cwd: string, name: string, searchPath: string): Promise<boolean> {
  const places = [".", name, ...searchPath.split(":")].map((path) => resolve(cwd, path));
  return places.some((place) => drive.holds(place)) ? drive.answers() : true;
}

/** Default working directory of a command, as for login, since not every user has a home. */
export function usualPlace(user: User): string {
  return IMAGE.cwd ?? (isDirectory(user.home) ? user.home : "/");
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
