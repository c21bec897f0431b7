// Run kinesalite on a loopback port. Its own command would listen on all addresses.
// Arguments: the folder of its package, the port, the folder for its data.
const [packages, port, folder] = process.argv.slice(2);
const kinesalite = require(require.resolve("kinesalite", { paths: [packages] }));

const server = kinesalite({
    path: folder,
    createStreamMs: 50,
    deleteStreamMs: 50,
    updateStreamMs: 50,
    shardLimit: 100,
});
server.listen(Number(port), "127.0.0.1");
process.on("SIGTERM", () => server.close(() => process.exit(0)));
