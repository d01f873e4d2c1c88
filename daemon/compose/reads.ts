/** List of all reads that run in reader threads. */
import type { AnyRead } from "../db/readers/read.ts";
import { auditReads } from "../domain/audit/reading/reads.ts";
import { fabricReads } from "../domain/fabric/reads.ts";
import { orgReads } from "../domain/orgs/reads.ts";
import { overviewReads } from "../domain/overview/reads.ts";

export const READS: readonly AnyRead[] = [...auditReads, ...fabricReads, ...orgReads, ...overviewReads];
