/** Owns a program that only imports a client of PostgreSQL, and says how many milliseconds that took; see postgres.ts. */

/** Put here by who compiles this. */
declare const CLIENT: "pg" | "postgres";

export {};

const from = performance.now();
if (CLIENT === "pg") await import("pg");
if (CLIENT === "postgres") await import("postgres");
console.log(performance.now() - from);
