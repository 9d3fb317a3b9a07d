module gopgas

go 1.26
