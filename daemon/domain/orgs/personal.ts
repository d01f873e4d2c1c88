/** Owns what organizations keep of people: who has made a key. It is the organization's, and stays with an id that names nobody. */
import type { PersonalTable } from "../../db/personal.ts";
import { apiKeys, sshKeys } from "./table.ts";

export const orgsPersonal: readonly PersonalTable[] = [
  { table: apiKeys, ids: [apiKeys.created_by_id], secrets: ["key_sha256"], end: "kept" },
  { table: sshKeys, ids: [sshKeys.created_by_id], end: "kept" },
];
