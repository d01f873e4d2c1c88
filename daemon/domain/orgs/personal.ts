/**
 * Personal data in the tables of organizations: makers of keys. The rows belong to the organization, and stay with an id that identifies no
 * person.
 */
import type { PersonalTable } from "../../db/personal.ts";
import { apiKeys, sshKeys } from "./table.ts";

export const orgsPersonal: readonly PersonalTable[] = [
  { table: apiKeys, ids: [apiKeys.created_by_id], secrets: ["key_sha256"], end: "kept" },
  { table: sshKeys, ids: [sshKeys.created_by_id], end: "kept" },
];
