// Unpack the Chromium of @sparticuz/chromium: node unpack.mjs FOLDER, from the folder with node_modules.
import { execFileSync } from "node:child_process";
import { chmodSync, createReadStream, createWriteStream, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

const folder = resolve(process.argv[2]);
const packed = "node_modules/@sparticuz/chromium/bin";
mkdirSync(folder, { recursive: true });
for (const name of ["chromium", "al2023.tar", "fonts.tar"]) {
  const unpacked = `${folder}/${name}`;
  await pipeline(
    createReadStream(`${packed}/${name}.br`),
    createBrotliDecompress(),
    createWriteStream(unpacked),
  );
  if (name.endsWith(".tar")) {
    execFileSync("tar", ["xf", unpacked, "-C", folder]);
    rmSync(unpacked);
  }
}
chmodSync(`${folder}/chromium`, 0o755);
writeFileSync(
  `${folder}/fonts.conf`,
  `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${folder}/fonts</dir><cachedir>${folder}/cache</cachedir></fontconfig>`,
);
